"""The driver of the metadata quorum: it owns the metadata log, and every committed metadata change goes through it.

`QuorumMachine` decides and this driver carries out its effects. Events are queued. One event is stepped, its effects
are performed in order (``quorum-state`` is durable before any later effect), and then the next event follows. Flushing
(`log_writer`) and publishing (`commits`) run concurrently, so a slow disk or a slow subscriber does not keep the quorum
from answering.

`QuorumDriver.submit` takes a decision: a function of the latest appended image. Its records are appended at once and
make the image that the next decision sees; the caller waits until they are committed and published. Decisions are taken
when this node is the leader and everything before its epoch, and the epoch's first record, is committed; an empty log
then gets the bootstrap records. A decision that was not committed when leadership is lost is answered with
NOT_CONTROLLER; it may or may not survive.

A decision about thousands of partitions takes several iterations of the event loop (`Steps`), and so do its image and
its batch. The next decision waits for its end. If this node loses leadership before that, the decision has no effect.

A node that is the only voter leads as soon as it starts. If the metadata log cannot be written or flushed, or a
subscriber cannot apply a committed image, this node's state no longer matches the log: ``on_fatal`` and every caller
get `MetadataLogFailed`, and the process is expected to end. NoOp records are not written
(docs/adr/0003-no-noop-records.md).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, assert_never

from millbeck.controller.result import RECORDS_AT_ONCE, Result, Steps, finished
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    NotController,
    PolicyViolation,
    UnknownServerError,
    from_code,
)
from millbeck.kernel.ids import ZERO_UUID
from millbeck.metadata.batches import BatchTooLarge, MetadataBatchWriter, control_batch
from millbeck.metadata.delta import IncrementalReplay, MetadataDelta, advance
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.features import LATEST_METADATA_VERSION, METADATA_TRANSACTIONS_FROM, METADATA_VERSION
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from millbeck.metadata.snapshot import SnapshotId
from millbeck.raft.effects import (
    AppendControl,
    AppendFetched,
    ChangeLeader,
    Effect,
    InstallSnapshot,
    MoveHighWatermark,
    PersistState,
    SendRequest,
    SendResponse,
    ServeFetch,
    ServeSnapshot,
    TruncateTo,
    WriteSnapshotPart,
)
from millbeck.raft.events import (
    Event,
    LogAppended,
    ProcessStarted,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    ShutdownRequested,
    SnapshotTaken,
    TimerExpired,
    UpgradeRequested,
)
from millbeck.raft.machine import QuorumMachine
from millbeck.raft.messages import Request, Response
from millbeck.raft.options import QuorumOptions
from millbeck.raft.quorum_state import QuorumStateError
from millbeck.raft.roles import NEVER_MS, Following
from millbeck.raft.voters import Leader, ReplicaKey, VoterHistory, VoterSet
from millbeck.records.control import KRaftVersion, Voter, VoterEndpoint, Voters
from millbeck.server.loop.tasks import TimeSlices, run_off_loop
from millbeck.server.metadata import metadata_files
from millbeck.server.metadata.commits import MetadataCommits, Subscriber
from millbeck.server.metadata.decision_statistics import DecisionStatistics
from millbeck.server.metadata.fetch_serving import FetchServing
from millbeck.server.metadata.loading import load_state
from millbeck.server.metadata.log_view import MetadataLogView
from millbeck.server.metadata.log_writer import MetadataLogWriter
from millbeck.server.metadata.quorum_description import QuorumDescription, describe_quorum
from millbeck.server.metadata.quorum_settings import QuorumSettings
from millbeck.server.metadata.snapshots import MetadataSnapshots, SnapshotOptions
from millbeck.storage.atomic_file import parent_of
from millbeck.storage.log import Log

if TYPE_CHECKING:
    from millbeck.server.context import ChangeOrigin
    from millbeck.server.metadata.raft_peers import RaftClient

T = TypeVar("T")

LeadershipListener = Callable[[int], None]
"""Called with the epoch when this node becomes, or ceases to be, the active controller."""

LeaderListener = Callable[[Leader], None]

BATCH_RECORDS_MAX: Final = 500
"""Maximum records per batch of a decision that need not be atomic: as many as one iteration of the event loop applies
and writes."""

STOP_SECONDS_MAX: Final = 5.0
"""How long a stopping leader waits until a majority has committed its records."""

logger = logging.getLogger(__name__)


class MetadataLogFailed(Exception):
    """The metadata log cannot be read, written or flushed, or its records cannot be applied: the process must end."""


class QuorumDriver:
    """The driver; ``image`` is the committed image. ``machine``, ``log`` and ``snapshots`` may be read by other
    components."""

    def __init__(
        self,
        environment: Environment,
        log: Log,
        *,
        node_id: int,
        voters: tuple[int, ...] = (),
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        on_fatal: Callable[[MetadataLogFailed], None],
        snapshot_options: SnapshotOptions | None = None,
        settings: QuorumSettings | None = None,
    ) -> None:
        """``voters`` is this node alone, or empty when the voters are in ``settings`` or in the metadata log."""
        assert voters in ((), (node_id,)), "other voters are named with their addresses, in the settings"
        self.environment = environment
        self.log = log
        self.node_id = node_id
        self.settings = settings or QuorumSettings()
        self.failure: MetadataLogFailed | None = None
        self.machine: QuorumMachine | None = None
        self.statistics = DecisionStatistics()
        self.on_change: Callable[[ChangeOrigin, MetadataImage, Sequence[MetadataRecord]], None] | None = None
        """Called with what a client has changed, once it is committed."""
        self._voters = voters
        self._spawn = spawn
        self._on_fatal = on_fatal
        self._flush_lock = asyncio.Lock()
        self.deciding = asyncio.Lock()
        """A lock held from a decision's first step until its last record is appended."""
        self.snapshots = MetadataSnapshots(
            environment,
            log,
            snapshot_options or SnapshotOptions(),
            flush_lock=self._flush_lock,
            spawn=spawn,
            on_log_failed=lambda error: self._fail(f"the metadata log cannot be flushed: {error}", error),
            voters_at=self._voters_at,
            on_taken=lambda snapshot_id: self._deliver(SnapshotTaken(end_offset=snapshot_id.end_offset)),
        )
        self.commits = MetadataCommits(
            environment,
            log,
            spawn=spawn,
            on_published=self._on_published,
            on_failed=self._commit_failed,
        )
        self._log_writer = MetadataLogWriter(
            environment,
            log,
            self.commits.replay,
            self.snapshots,
            flush_lock=self._flush_lock,
            spawn=spawn,
            deliver=self._deliver,
            on_failed=self._commit_failed,
        )
        self._serving = FetchServing(environment, log, self.settings, spawn=spawn, answer=self._complete)
        self._peers: RaftClient | None = None
        self._events: deque[Event] = deque()
        self._answers: dict[int, asyncio.Future[Response]] = {}
        self._token = 0
        self._on_gained: list[LeadershipListener] = []
        self._on_lost: list[LeadershipListener] = []
        self._on_leader: list[LeaderListener] = []
        self._caught_up: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._active_epoch = -1
        self._deciding_epoch = -1
        self._active_from_offset = 0
        self._is_pumping = False
        self._is_stopped = False
        self._logged_fault = ""

    # State.

    @property
    def image(self) -> MetadataImage:
        return self.commits.image

    @image.setter
    def image(self, image: MetadataImage) -> None:
        self.commits.image = image

    @property
    def epoch(self) -> int:
        return -1 if self.machine is None else self.machine.epoch

    @property
    def high_watermark(self) -> int:
        return -1 if self.machine is None else self.machine.high_watermark

    @property
    def leader(self) -> Leader:
        """The quorum leader as this node knows it, for forwarding and for responses that contain the controller id."""
        if self.machine is None or self._is_stopped:
            return Leader(epoch=max(self.epoch, 0))
        return self.machine.leader

    @property
    def is_active(self) -> bool:
        """Whether `submit` takes decisions here: this node leads, and a record of its epoch is committed."""
        machine = self.machine
        return (
            machine is not None and machine.is_leader and self._active_epoch == machine.epoch and not self._is_stopped
        )

    @property
    def voters(self) -> VoterSet:
        """The current voters as this node knows them; empty before the start."""
        return VoterSet() if self.machine is None else self.machine.history.latest

    @property
    def kraft_version(self) -> int:
        """The finalized ``kraft.version``: 1 when the voters are in the log."""
        return 0 if self.machine is None else self.machine.history.kraft_version

    def on_leadership(self, *, gained: LeadershipListener, lost: LeadershipListener) -> None:
        """Register callbacks for when this node becomes the active controller and when it no longer is, each with the
        epoch.

        ``gained`` is called when everything before the epoch and its first record are committed and published, so
        ``image`` is current; ``lost`` before any decision of a later leader is published. Register before `start`.
        """
        self._on_gained.append(gained)
        self._on_lost.append(lost)

    def on_leader_change(self, listener: LeaderListener) -> None:
        """Call ``listener`` on every change of `leader`, also on observers. Register before `start`."""
        self._on_leader.append(listener)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` with every committed image, including the first if registered before `start`."""
        self.commits.subscribe(subscriber)

    # Starting and stopping.

    async def start(self) -> None:
        """Load the log and join the quorum. The only voter is the leader and has published the first image when this
        returns.

        On other nodes this returns as soon as the local log is loaded: see `wait_caught_up`. The controller listener
        must be bound before the call, because the other voters cannot elect a leader without it. Raises
        `MetadataLogFailed`.
        """
        try:
            machine = await self._load()
        except (MetadataFault, QuorumStateError, OSError, ApiError) as error:
            raise self._fail(f"the metadata log in {self.log.directory} cannot be opened: {error}", error) from error
        self.machine = machine
        self._log_writer.ensure_flush()
        self._deliver(ProcessStarted())
        if machine.can_vote and machine.history.latest.is_only(machine.key):
            await self.wait_caught_up()

    async def _load(self) -> QuorumMachine:
        files, directory, settings = self.environment.files, self.log.directory, self.settings
        opened = load_state(files, self.log)
        history = VoterHistory(self._configured_voters())
        if opened.snapshot is not None:
            found = opened.snapshot
            self.snapshots.found([*opened.older, found.kept], start_epoch=opened.start_epoch)
            self.commits.replay.begin_with(found)
            if found.content.kraft_version >= 1:
                voters = VoterSet.of(found.content.voters.voters if found.content.voters is not None else ())
                history = VoterHistory(voters, found.content.kraft_version)
                if found.id.end_offset:
                    history.restart(found.id.end_offset, voters, found.content.kraft_version)
        for offset, value in opened.voter_changes:
            history.appended(offset, value)
        if self.log.end_offset == 0:
            # A vote in a directory whose name is not durable could be lost.
            await run_off_loop(self.environment.threads, files.sync_directory, parent_of(directory))
        return QuorumMachine(
            key=ReplicaKey(self.node_id, settings.directory_id),
            log=MetadataLogView(self.log, self.snapshots),
            history=history,
            state=metadata_files.read_quorum_state(files, directory),
            below=self._below,
            options=QuorumOptions(
                can_vote=settings.can_vote,
                timeouts=settings.timeouts,
                listeners=settings.listeners,
                listener_name=settings.listener_name,
                bootstrap=tuple(
                    VoterEndpoint(name=settings.listener_name, host=address.host, port=address.port)
                    for address in settings.bootstrap_servers
                ),
                auto_join=settings.auto_join,
            ),
        )

    def _below(self, bound: int) -> int:
        return self.environment.randomness.below(bound)

    def _configured_voters(self) -> VoterSet:
        settings = self.settings
        if self._voters:
            return VoterSet((Voter(node_id=self.node_id, directory_id=ZERO_UUID, endpoints=settings.listeners),))
        return VoterSet.of(
            tuple(
                Voter(
                    node_id=node_id,
                    directory_id=ZERO_UUID,
                    endpoints=(VoterEndpoint(name=settings.listener_name, host=address.host, port=address.port),),
                )
                for node_id, address in settings.static_voters.items()
            )
        )

    async def wait_caught_up(self) -> None:
        """Wait until a leader is known and everything it had committed by then is published here. Raises
        `MetadataLogFailed`."""
        if self.failure is not None:
            raise self.failure
        if not self._is_caught_up():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._caught_up.append(future)
            await future

    def _is_caught_up(self) -> bool:
        machine = self.machine
        if machine is None or not self.image.features.metadata_version:
            return False
        if machine.is_leader:
            return self.is_active
        role = machine.role_state
        return isinstance(role, Following) and 0 <= role.known_high_watermark <= self.commits.position

    async def stop(self) -> None:
        """Accept no more decisions, wait until the earlier ones are committed, and resign. Nothing flushes or cuts the
        metadata log any more when this returns, so that it can be closed cleanly. Raises `MetadataLogFailed`."""
        was_active, was_stopped = self.is_active, self._is_stopped
        self._is_stopped = True
        self.snapshots.stop()
        machine = self.machine
        if machine is None:
            return
        try:
            await self._resign(machine, was_active=was_active)
        finally:
            self._log_writer.stop()
            if not was_stopped:
                # The lock is kept: a flush, a truncation or a cleanup that is running ends first, and none follows.
                await self._flush_lock.acquire()

    async def _resign(self, machine: QuorumMachine, *, was_active: bool) -> None:
        if self.failure is not None:
            raise self.failure
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                if was_active:
                    await self._wait_committed(self.log.end_offset)
        except (TimeoutError, NotController):
            logger.warning("the controller stops before its last metadata records are committed; they may be lost")
        self._deliver(ShutdownRequested())
        deadline_s = self.environment.clock.monotonic() + self.settings.timeouts.request_ms / 1000
        while not machine.is_stopped and self.environment.clock.monotonic() < deadline_s and self.failure is None:
            await asyncio.sleep(0.01)
        self._close()

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._peers is not None:
            self._peers.close()
        self._serving.close()
        error = self.failure or NotController("this node is stopping")
        self.commits.close(error)
        waiting: list[asyncio.Future[Any]] = [*self._answers.values(), *self._caught_up]
        self._answers, self._caught_up = {}, []
        for future in waiting:
            if not future.done():
                future.set_exception(error)

    # Requests to the quorum.

    def describe(self) -> QuorumDescription | None:
        """Describe the quorum if this node is its leader; None on every other node."""
        if self.machine is None:
            return None
        return describe_quorum(self.machine, now_ms=self._now_ms(), wall_ms=self.environment.clock.wall_ms())

    async def ask(self, ask: Request) -> Response:
        """Handle a request of another quorum member or of an admin client. Raises `MetadataLogFailed`,
        `NotController`."""
        return await self._ask(lambda token: RequestReceived(token=token, ask=ask))

    async def raise_kraft_version(self) -> Response:
        """Store the voters in the metadata log from now on (``kraft.version`` 1)."""
        return await self._ask(lambda token: UpgradeRequested(token=token))

    def resign(self) -> None:
        """Resign leadership, because the controller on this node cannot continue."""
        self._deliver(ResignRequested(epoch=self.epoch))

    async def _ask(self, event: Callable[[int], Event]) -> Response:
        if self.failure is not None:
            raise self.failure
        if self.machine is None or self.machine.is_stopped:
            raise NotController("this node does not take part in the quorum at the moment")
        self._token += 1
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._answers[self._token] = future
        self._deliver(event(self._token))
        return await future

    def _complete(self, token: int, reply: Response) -> None:
        future = self._answers.pop(token, None)
        if future is not None and not future.done():
            future.set_result(reply)

    # Deciding.

    async def submit(
        self, decide: Callable[[MetadataImage], Result[T] | Steps[Result[T]]], *, by: ChangeOrigin | None = None
    ) -> T:
        """Carry out a decision; returns its response once everything it was based on is committed. ``by`` is the client
        that requested it, for the audit.

        Raises whatever ``decide`` raises, and then nothing has changed; `NotController` when this node does not lead,
        or ceased to before the decision was committed; `MetadataLogFailed` when the log failed, so that the outcome is
        not known.
        """
        has_gone_up = False
        while True:
            async with self.deciding:
                self._check_active()
                clock = self.environment.clock
                began_s, turns = clock.monotonic(), TimeSlices(clock)
                before = self.commits.appended_image
                decided = decide(before)
                result = decided if isinstance(decided, Result) else await self._in_turns(decided, turns)
                goes_up = result.kraft_version is not None and result.kraft_version > self.kraft_version
                if has_gone_up or not goes_up:
                    await self._in_turns(self._append(result.records, is_atomic=result.is_atomic), turns)
                    self.statistics.decided(clock.monotonic() - began_s)
                    end_offset = self.log.end_offset
                    break
            assert result.kraft_version is not None
            await self._go_up_to(result.kraft_version)
            has_gone_up = True
        await self._wait_committed(end_offset)
        if by is not None and result.records and self.on_change is not None:
            self.on_change(by, before, result.records)
        return result.response

    def _check_active(self) -> None:
        if self.failure is not None:
            raise self.failure
        if not self.is_active:
            raise NotController

    async def _in_turns(self, steps: Steps[T], turns: TimeSlices) -> T:
        """Run the steps of a decision; raises `NotController` when this node loses leadership before the last one."""
        epoch = self.epoch
        while True:
            try:
                next(steps)
            except StopIteration as end:
                value: T = end.value
                return value
            await turns.yield_to_loop()
            self._check_active()
            if self.epoch != epoch:
                raise NotController

    async def _go_up_to(self, kraft_version: int) -> None:
        """Raise kraft.version first: if a voter does not support it, the whole request is rejected."""
        reply = await self.raise_kraft_version()
        if reply.error_code:
            raise from_code(reply.error_code, reply.message or f"kraft.version cannot be raised to {kraft_version}")
        if not self.is_active:
            raise NotController

    async def _wait_committed(self, end_offset: int) -> None:
        await self.commits.wait(end_offset)

    def _append(self, records: list[MetadataRecord], *, is_atomic: bool) -> Steps[None]:
        """Append records, and make the image that includes them.

        When an `ApiError` is raised, nothing has changed; of records that are not atomic, the first batches may have
        been appended."""
        chunk = max(len(records), 1) if is_atomic else BATCH_RECORDS_MAX
        parts = [records[start : start + chunk] for start in range(0, len(records), chunk)]
        parts.reverse()
        refusal: Exception | None = None
        while parts:
            part = parts.pop()
            try:
                yield from self._append_batch(part)
            except (BatchTooLarge, MetadataFault) as error:
                middle = 0 if is_atomic else len(part) // 2
                if middle:
                    # Too large, or one of them can not be replayed: the others do not depend on that.
                    parts += (part[middle:], part[:middle])
                else:
                    refusal = error
        if isinstance(refusal, BatchTooLarge):
            raise PolicyViolation(f"The change is too large for one batch: {refusal}") from refusal
        if refusal is not None:
            self.statistics.fault_count += 1
            if str(refusal) != self._logged_fault:
                self._logged_fault = str(refusal)
                logger.error(
                    "the records of a decision cannot be applied to the image it was based on", exc_info=refusal
                )
            raise UnknownServerError(str(refusal)) from refusal

    def _append_batch(self, records: list[MetadataRecord]) -> Steps[None]:
        """Append all or nothing; raises `BatchTooLarge`, `MetadataFault`."""
        now_ms = self.environment.clock.wall_ms()
        before = self.commits.appended_image
        fold = IncrementalReplay(before)
        metadata_version = before.features.metadata_version or LATEST_METADATA_VERSION
        writer = MetadataBatchWriter(timestamp_ms=now_ms, metadata_version=metadata_version)
        for start in range(0, len(records), RECORDS_AT_ONCE):
            some = records[start : start + RECORDS_AT_ONCE]
            # The image first: a record that can not be replayed must never get into the log.
            fold.add(some)
            writer.add(some)
            yield
        offset = self.log.end_offset
        image, delta = fold.finish(offset=offset + len(records) - 1, epoch=self.epoch, timestamp_ms=now_ms)
        batch = writer.build(base_offset=offset, epoch=self.epoch)
        self._write(batch, self.epoch, now_ms)
        self.commits.appended(image, delta, len(batch))

    def _write(self, batch: bytes, epoch: int, now_ms: int) -> None:
        """Append a batch as leader, then start a flush and serve the waiting fetches."""
        try:
            self._log_writer.write(batch, epoch, now_ms)
        except ApiError as error:
            raise self._fail(f"the metadata log cannot be written: {error}", error) from error
        if self.machine is not None:
            self._serving.evaluate_again(self.machine)

    def _begin_deciding(self, machine: QuorumMachine) -> None:
        """Called when everything before this epoch is published: accept decisions once the epoch's first record is
        committed."""
        self.commits.on_leadership_gained()
        self._deciding_epoch = machine.epoch
        image = self.commits.appended_image
        if image.open_transaction is not None:
            finished(self._append([AbortTransactionRecord(reason="A new controller has started.")], is_atomic=True))
        if image.features.metadata_version == 0:
            finished(self._append(self._bootstrap(), is_atomic=True))
        self._active_from_offset = self.log.end_offset if self.commits.appended_image is not image else 0

    def _bootstrap(self) -> list[MetadataRecord]:
        """Append the first records of a new cluster, all or nothing."""
        records = metadata_files.read_bootstrap(self.environment.files, parent_of(self.log.directory))
        levels = {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)}
        metadata_version = levels.get(METADATA_VERSION, 0)
        if not metadata_version:
            raise MetadataFault("the bootstrap records do not set metadata.version")
        if metadata_version < METADATA_TRANSACTIONS_FROM:
            return records
        return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]

    def _on_published(self, image: MetadataImage, size_bytes: int) -> None:
        """Called when all subscribers have an image, which may be the last one needed before this node can decide."""
        if image.features.metadata_version:
            self.snapshots.committed(image, size_bytes)
        machine = self.machine
        assert machine is not None
        position = self.commits.position
        if machine.is_leader and not self._is_stopped:
            if not self.commits.is_deciding and position > machine.epoch_start_offset:
                self._begin_deciding(machine)
            is_due = self._deciding_epoch == machine.epoch and self._active_epoch != machine.epoch
            if is_due and self.commits.is_deciding and position >= self._active_from_offset:
                self._active_epoch = machine.epoch
                logger.info("this node is the active controller, in epoch %d", machine.epoch)
                for gained in self._on_gained:
                    gained(machine.epoch)
        self._note_caught_up()

    def _note_caught_up(self) -> None:
        if self._caught_up and self._is_caught_up():
            waiting, self._caught_up = self._caught_up, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    def _note_role(self, machine: QuorumMachine) -> None:
        """Called after every step: a node that lost leadership accepts no more decisions and fails the pending ones."""
        if self._deciding_epoch >= 0 and not (machine.is_leader and machine.epoch == self._deciding_epoch):
            self._deciding_epoch = -1
            self.commits.on_leadership_lost(NotController("this node no longer leads the quorum"))
            lost_epoch, self._active_epoch = self._active_epoch, -1
            if lost_epoch >= 0:
                for lost in self._on_lost:
                    lost(lost_epoch)
        self._serving.evaluate_again(machine)

    # Stepping.

    def _deliver(self, event: Event) -> None:
        self._events.append(event)
        if not self._is_pumping and self.failure is None:
            self._is_pumping = True
            self._spawn(self._pump())

    async def _pump(self) -> None:
        machine = self.machine
        assert machine is not None
        try:
            while self._events and self.failure is None:
                was_leader = (machine.is_leader, machine.epoch)
                effects = machine.step(self._events.popleft(), self._now_ms())
                if was_leader != (machine.is_leader, machine.epoch):
                    self._note_role(machine)
                for effect in effects:
                    await self._perform(machine, effect)
            self._note_caught_up()
        except Exception as error:
            logger.exception("the metadata quorum failed")
            self._fail(f"the metadata log cannot be written: {error}", error)
        finally:
            self._is_pumping = False
        self._set_timer(machine)

    def _now_ms(self) -> int:
        return int(self.environment.clock.monotonic() * 1000 + 0.001)

    def _set_timer(self, machine: QuorumMachine) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = machine.next_deadline_ms
        if deadline_ms < NEVER_MS and self.failure is None and not machine.is_stopped:
            delay_s = max(deadline_ms - self._now_ms(), 0) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._deliver, TimerExpired())

    async def _perform(self, machine: QuorumMachine, effect: Effect) -> None:
        match effect:
            case PersistState():
                await run_off_loop(
                    self.environment.threads,
                    metadata_files.write_quorum_state,
                    self.environment.files,
                    self.log.directory,
                    effect.state,
                )
            case AppendControl():
                # A decision relies on the offsets that follow the image it is based on.
                async with self.deciding:
                    self._append_control(effect)
            case AppendFetched():
                self._events.appendleft(self._log_writer.append_fetched(effect))
            case TruncateTo():
                self._events.appendleft(await self._log_writer.truncate(effect.offset))
            case MoveHighWatermark():
                self.commits.moved(effect.high_watermark)
                self._serving.evaluate_again(machine)
            case ChangeLeader():
                who = "nobody" if effect.leader.node_id < 0 else f"node {effect.leader.node_id}"
                logger.info("%s leads the quorum in epoch %d", who, effect.leader.epoch)
                for listener in self._on_leader:
                    listener(effect.leader)
            case SendRequest():
                self._send(effect)
            case SendResponse():
                self._complete(effect.token, effect.reply)
            case ServeFetch():
                self._serving.serve(machine, effect.token, effect.ask)
            case ServeSnapshot():
                self._serving.serve_snapshot(machine, effect.token, effect.ask)
            case WriteSnapshotPart():
                await run_off_loop(
                    self.environment.threads,
                    metadata_files.write_snapshot_part,
                    self.environment.files,
                    self.log.directory,
                    SnapshotId(*effect.snapshot),
                    effect.position,
                    effect.data,
                )
            case InstallSnapshot():
                self._events.appendleft(await self._log_writer.install(SnapshotId(*effect.snapshot)))
            case _:
                assert_never(effect)

    def _send(self, effect: SendRequest) -> None:
        if self._peers is None:
            # Imported late: a single node never gets here and starts faster without it.
            from millbeck.server.metadata.raft_peers import RaftClient

            self._peers = RaftClient(self.environment, self.settings, node_id=self.node_id, spawn=self._spawn)
        node_id, ask = effect.node_id, effect.ask
        self._peers.send(
            effect.endpoint,
            ask,
            lambda reply: self._deliver(ResponseReceived(node_id=node_id, ask=ask, reply=reply)),
        )

    def _append_control(self, effect: AppendControl) -> None:
        now_ms = self.environment.clock.wall_ms()
        offset = self.log.end_offset
        batch = control_batch(effect.values, base_offset=offset, epoch=effect.epoch, timestamp_ms=now_ms)
        made: tuple[MetadataImage, MetadataDelta] | None = None
        if self.commits.is_deciding:
            last_offset = offset + len(effect.values) - 1
            made = advance(self.commits.appended_image, [], offset=last_offset, epoch=effect.epoch, timestamp_ms=now_ms)
        self._write(batch, effect.epoch, now_ms)
        if made is not None:
            self.commits.appended(*made, len(batch))
        changes = tuple(
            (offset + index, value)
            for index, value in enumerate(effect.values)
            if isinstance(value, KRaftVersion | Voters)
        )
        self._events.appendleft(LogAppended(end_offset=self.log.end_offset, changes=changes))

    def _voters_at(self, end_offset: int) -> tuple[int, Voters | None]:
        if self.machine is None:
            return 0, None
        version, voters = self.machine.history.at(end_offset)
        return version, voters.record() if version >= 1 else None

    def _commit_failed(self, error: Exception) -> None:
        logger.error("the metadata log failed", exc_info=error)
        self._fail(f"a committed metadata record cannot be applied: {error}", error)

    def _fail(self, message: str, cause: BaseException) -> MetadataLogFailed:
        if self.failure is None:
            logger.critical("%s", message)
            self.statistics.fault_count += 1
            self.failure = MetadataLogFailed(message)
            self.failure.__cause__ = cause
            self.snapshots.stop()
            self._log_writer.stop()
            self._close()
            self._on_fatal(self.failure)
        return self.failure
