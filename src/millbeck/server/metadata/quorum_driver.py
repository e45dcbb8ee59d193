"""The quorum's driver: it owns the metadata log, and everything that is committed goes through it.

`QuorumMachine` decides, this carries out. Events wait in line; one is stepped, its effects are done in order (the
state's file is on disk before anything after it), and only then comes the next. Flushing and publishing go on beside:
what is appended while a sync runs shares the next one, and a subscriber that takes its time does not keep the quorum
from answering.

`QuorumDriver.submit` takes a decision, a function of the latest appended image. Its records are appended at once and
make the image that the next decision sees; the caller waits until they are committed and published. Decisions are taken
once this node leads and everything before its epoch, and the epoch's first record, is committed; then an empty log gets
the bootstrap records. A decision that was not committed when leadership is lost is answered NOT_CONTROLLER: it may have
come about or not.

A node that is its only voter leads as soon as it starts, and waits for nobody. A metadata log that can not be written
or synced, or a subscriber that can not take what is committed, leave a node that no longer does what the log says:
`MetadataLogFailed` goes to ``on_fatal`` and to every caller, and the process is expected to end. NoOp records are not
written (docs/adr/0003-no-noop-records.md).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar, assert_never

from millbeck.controller.result import RECORD_COUNT_MAX, Result
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    CorruptMessage,
    NotController,
    PolicyViolation,
    UnknownServerError,
    from_code,
)
from millbeck.kernel.ids import ZERO_UUID
from millbeck.metadata.batches import BatchTooLarge, control_batch, data_batch
from millbeck.metadata.delta import MetadataDelta, advance
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
    Answer,
    AppendControl,
    AppendFetched,
    ChangeLeader,
    Effect,
    InstallSnapshot,
    MoveHighWatermark,
    PersistState,
    Send,
    ServeFetch,
    ServeSnapshot,
    TruncateTo,
    WriteSnapshotPart,
)
from millbeck.raft.events import (
    Answered,
    Asked,
    Event,
    LogAppended,
    LogFlushed,
    LogTruncated,
    ResignRequested,
    ShutdownRequested,
    SnapshotInstalled,
    SnapshotTaken,
    Started,
    TimePassed,
    UpgradeRequested,
)
from millbeck.raft.machine import QuorumMachine
from millbeck.raft.messages import Ask, Reply
from millbeck.raft.quorum_state import QuorumStateFault
from millbeck.raft.roles import NEVER_MS, Following
from millbeck.raft.voters import Leader, ReplicaKey, VoterHistory, VoterSet
from millbeck.records import batch as record_batch
from millbeck.records.control import KRaftVersion, Voter, VoterEndpoint, Voters
from millbeck.server.decision_statistics import DecisionStatistics
from millbeck.server.drivers import metadata_files
from millbeck.server.drivers.fetch_serving import FetchServing
from millbeck.server.drivers.metadata_commits import MetadataCommits, Subscriber
from millbeck.server.drivers.metadata_loading import open_state, voter_changes_of
from millbeck.server.drivers.metadata_log_view import MetadataLogView
from millbeck.server.drivers.metadata_snapshots import MetadataSnapshots, SnapshotOptions
from millbeck.server.drivers.quorum_description import QuorumDescription, describe_quorum
from millbeck.server.drivers.quorum_settings import QuorumSettings
from millbeck.server.log_steps import truncate
from millbeck.server.off_loop import run_off_loop
from millbeck.storage.atomic_file import parent_of
from millbeck.storage.flush import FlushOutcome
from millbeck.storage.following import UnexpectedAppendOffset
from millbeck.storage.log import Log
from millbeck.storage.producer_state import Origin

if TYPE_CHECKING:
    from millbeck.server.drivers.raft_peers import RaftPeers

T = TypeVar("T")

LeadershipListener = Callable[[int], None]
"""Told of the epoch in which this node begins or ceases to be the active controller."""

LeaderListener = Callable[[Leader], None]

STOP_SECONDS_MAX: Final = 5.0
"""How long a stopping leader waits for a majority to commit what it has decided."""

logger = logging.getLogger(__name__)


class MetadataLogFailed(Exception):
    """The metadata log can not be read, written or synced, or can not be obeyed: the process must end."""


class QuorumDriver:
    """``image`` is the committed one; ``machine``, ``log`` and ``snapshots`` are there to be looked at."""

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
        """``voters`` is this node alone, or empty when ``settings`` or the directory says who votes."""
        assert voters in ((), (node_id,)), "other voters are named with their addresses, in the settings"
        self.environment = environment
        self.log = log
        self.node_id = node_id
        self.settings = settings or QuorumSettings()
        self.failure: MetadataLogFailed | None = None
        self.machine: QuorumMachine | None = None
        self.statistics = DecisionStatistics()
        self._voters = voters
        self._spawn = spawn
        self._on_fatal = on_fatal
        self._flush_lock = asyncio.Lock()
        self.snapshots = MetadataSnapshots(
            environment,
            log,
            snapshot_options or SnapshotOptions(),
            flush_lock=self._flush_lock,
            spawn=spawn,
            on_log_failed=lambda error: self._fail(f"the metadata log can not be synced: {error}", error),
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
        self._serving = FetchServing(environment, log, self.settings, spawn=spawn, answer=self._settle)
        self._peers: RaftPeers | None = None
        self._events: deque[Event] = deque()
        self._answers: dict[int, asyncio.Future[Reply]] = {}
        self._token = 0
        self._on_gained: list[LeadershipListener] = []
        self._on_lost: list[LeadershipListener] = []
        self._on_leader: list[LeaderListener] = []
        self._caught_up: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._active_epoch = -1
        self._deciding_epoch = -1
        self._active_from_offset = 0
        self._told_flushed_offset = -1
        self._is_pumping = False
        self._is_flushing = False
        self._is_stopped = False

    # What it is.

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
        """The quorum's leader as this node knows it, for forwarding and for the replies that name the controller."""
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
        """Who votes now, as this node knows it; empty before the start."""
        return VoterSet() if self.machine is None else self.machine.history.latest

    @property
    def kraft_version(self) -> int:
        """The finalized ``kraft.version``: 1 when the voters are in the log."""
        return 0 if self.machine is None else self.machine.history.kraft_version

    def on_leadership(self, *, gained: LeadershipListener, lost: LeadershipListener) -> None:
        """Be told when this node becomes the active controller and when it no longer is, each with the epoch.

        ``gained`` is called when everything before the epoch and its first record are committed and published, so
        ``image`` is current; ``lost`` before any decision of a later leader is published. Register before `start`.
        """
        self._on_gained.append(gained)
        self._on_lost.append(lost)

    def on_leader_change(self, listener: LeaderListener) -> None:
        """Be told of every change of `leader`, on observers too. Register before `start`."""
        self._on_leader.append(listener)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Be told of every committed image, from the first one on when this is called before `start`."""
        self.commits.subscribe(subscriber)

    # Starting and stopping.

    async def start(self) -> None:
        """Load and take part. A node that is alone leads and has published the first image when this returns.

        Any other returns as soon as its own log is loaded: see `wait_caught_up`. The controller's listener must be
        bound by then, since the others cannot elect without it. Raises `MetadataLogFailed`.
        """
        try:
            machine = await self._load()
        except (MetadataFault, QuorumStateFault, OSError, ApiError) as error:
            raise self._fail(f"the metadata log in {self.log.directory} can not be opened: {error}", error) from error
        self.machine = machine
        self._ensure_flush()
        self._deliver(Started())
        if machine.can_vote and machine.history.latest.is_only(machine.key):
            await self.wait_caught_up()

    async def _load(self) -> QuorumMachine:
        files, directory, settings = self.environment.files, self.log.directory, self.settings
        opened = open_state(files, self.log)
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
            # A vote in a directory whose own name is not durable would be no vote.
            await run_off_loop(self.environment.threads, files.sync_directory, parent_of(directory))
        return QuorumMachine(
            key=ReplicaKey(self.node_id, settings.directory_id),
            log=MetadataLogView(self.log, self.snapshots),
            history=history,
            state=metadata_files.read_quorum_state(files, directory),
            below=self._below,
            can_vote=settings.can_vote,
            timeouts=settings.timeouts,
            listeners=settings.listeners,
            listener_name=settings.listener_name,
            bootstrap=tuple(
                VoterEndpoint(name=settings.listener_name, host=address.host, port=address.port)
                for address in settings.bootstrap_servers
            ),
            auto_join=settings.auto_join,
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
        """Until a leader is known and what it had committed by then is published here. Raises `MetadataLogFailed`."""
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
        """Take no more decisions, let those that were taken be committed, and hand over. Raises `MetadataLogFailed`."""
        was_active = self.is_active
        self._is_stopped = True
        self.snapshots.stop()
        machine = self.machine
        if machine is None:
            return
        if self.failure is not None:
            raise self.failure
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                if was_active:
                    await self._wait_committed(self.log.end_offset)
        except (TimeoutError, NotController):
            logger.warning("what was decided last could not be committed before the stop")
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

    # Asking the quorum.

    def describe(self) -> QuorumDescription | None:
        """The quorum as this node knows it from leading it; None on every other node."""
        if self.machine is None:
            return None
        return describe_quorum(self.machine, now_ms=self._now_ms(), wall_ms=self.environment.clock.wall_ms())

    async def ask(self, ask: Ask) -> Reply:
        """What another member, or an administrator, asks of this one. Raises `MetadataLogFailed`, `NotController`."""
        return await self._ask(lambda token: Asked(token=token, ask=ask))

    async def raise_kraft_version(self) -> Reply:
        """Let the voters be in the log from now on (``kraft.version`` 1)."""
        return await self._ask(lambda token: UpgradeRequested(token=token))

    def resign(self) -> None:
        """The controller on this node can not go on leading."""
        self._deliver(ResignRequested(epoch=self.epoch))

    async def _ask(self, event: Callable[[int], Event]) -> Reply:
        if self.failure is not None:
            raise self.failure
        if self.machine is None or self.machine.is_stopped:
            raise NotController("this node does not take part in the quorum now")
        self._token += 1
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._answers[self._token] = future
        self._deliver(event(self._token))
        return await future

    def _settle(self, token: int, reply: Reply) -> None:
        future = self._answers.pop(token, None)
        if future is not None and not future.done():
            future.set_result(reply)

    # Deciding.

    async def submit(self, decide: Callable[[MetadataImage], Result[T]]) -> T:
        """Carry out a decision; returns its response once everything it was based on is committed.

        Raises whatever ``decide`` raises, and then nothing has changed; `NotController` when this node does not lead,
        or ceased to before the decision was committed; `MetadataLogFailed` when the log failed, so that the outcome is
        not known.
        """
        if self.failure is not None:
            raise self.failure
        if not self.is_active:
            raise NotController
        clock = self.environment.clock
        began_s = clock.monotonic()
        result = decide(self.commits.appended_image)
        if result.kraft_version is not None and result.kraft_version > self.kraft_version:
            await self._go_up_to(result.kraft_version)
            result = decide(self.commits.appended_image)
        self._append(result.records, is_atomic=result.is_atomic)
        self.statistics.decided(clock.monotonic() - began_s)
        await self._wait_committed(self.log.end_offset)
        return result.response

    async def _go_up_to(self, kraft_version: int) -> None:
        """The quorum's own level comes first: when a voter is not ready for it, nothing of the decision comes about."""
        reply = await self.raise_kraft_version()
        if reply.error_code:
            raise from_code(reply.error_code, reply.message or f"kraft.version can not be raised to {kraft_version}")
        if not self.is_active:
            raise NotController

    async def _wait_committed(self, end_offset: int) -> None:
        await self.commits.wait(end_offset)

    def _append(self, records: list[MetadataRecord], *, is_atomic: bool) -> None:
        """Append records and make the image of them; nothing has changed when an `ApiError` is raised."""
        chunk = len(records) if is_atomic else RECORD_COUNT_MAX
        for start in range(0, len(records), chunk or 1):
            part = records[start : start + chunk]
            now_ms = self.environment.clock.wall_ms()
            offset = self.log.end_offset
            before = self.commits.appended_image
            try:
                # The image first: a record that can not be replayed must never get into the log.
                image, delta = advance(
                    before, part, offset=offset + len(part) - 1, epoch=self.epoch, timestamp_ms=now_ms
                )
                batch = data_batch(
                    part,
                    base_offset=offset,
                    epoch=self.epoch,
                    timestamp_ms=now_ms,
                    metadata_version=before.features.metadata_version or LATEST_METADATA_VERSION,
                )
            except BatchTooLarge as error:
                raise PolicyViolation(f"The change is too large to be made at once: {error}") from error
            except MetadataFault as error:
                self.statistics.fault_count += 1
                logger.exception("a decision contradicts the image it was made on")
                raise UnknownServerError(str(error)) from error
            self._write(batch, self.epoch, now_ms)
            self.commits.appended(image, delta, len(batch))

    def _write(self, batch: bytes, epoch: int, now_ms: int) -> None:
        """Append a batch as leader, and see to it that it becomes durable and is fetched."""
        try:
            self.log.stage(batch, leader_epoch=epoch, now_ms=now_ms, origin=Origin.QUORUM)
            self.log.write_staged()
        except ApiError as error:
            raise self._fail(f"the metadata log can not be written: {error}", error) from error
        self._ensure_flush()
        if self.machine is not None:
            self._serving.look_again(self.machine)

    def _begin_deciding(self, machine: QuorumMachine) -> None:
        """Everything before this epoch is published: take decisions, once what a new leader has to say is committed."""
        self.commits.begin_deciding()
        self._deciding_epoch = machine.epoch
        image = self.commits.appended_image
        if image.open_transaction is not None:
            self._append([AbortTransactionRecord(reason="A new controller has started.")], is_atomic=True)
        if image.features.metadata_version == 0:
            self._append(self._bootstrap(), is_atomic=True)
        self._active_from_offset = self.log.end_offset if self.commits.appended_image is not image else 0

    def _bootstrap(self) -> list[MetadataRecord]:
        """The first records of a new cluster, all or nothing."""
        records = metadata_files.read_bootstrap(self.environment.files, parent_of(self.log.directory))
        levels = {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)}
        metadata_version = levels.get(METADATA_VERSION, 0)
        if not metadata_version:
            raise MetadataFault("the bootstrap records finalize no metadata.version")
        if metadata_version < METADATA_TRANSACTIONS_FROM:
            return records
        return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]

    def _on_published(self, image: MetadataImage, size_bytes: int) -> None:
        """An image has reached everybody: perhaps it was the last one missing for this node to decide."""
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
        """After every step: whoever leads no more decides no more, and says so."""
        if self._deciding_epoch >= 0 and not (machine.is_leader and machine.epoch == self._deciding_epoch):
            self._deciding_epoch = -1
            self.commits.stop_deciding(NotController("this node no longer leads the quorum"))
            lost_epoch, self._active_epoch = self._active_epoch, -1
            if lost_epoch >= 0:
                for lost in self._on_lost:
                    lost(lost_epoch)
        self._serving.look_again(machine)

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
            self._fail(f"the metadata log can not be kept: {error}", error)
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
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._deliver, TimePassed())

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
                self._append_control(effect)
            case AppendFetched():
                self._append_fetched(effect)
            case TruncateTo():
                await self._truncate(effect.offset)
            case MoveHighWatermark():
                self.commits.moved(effect.high_watermark)
                self._serving.look_again(machine)
            case ChangeLeader():
                who = "nobody" if effect.leader.node_id < 0 else f"node {effect.leader.node_id}"
                logger.info("%s leads the quorum in epoch %d", who, effect.leader.epoch)
                for listener in self._on_leader:
                    listener(effect.leader)
            case Send():
                self._send(effect)
            case Answer():
                self._settle(effect.token, effect.reply)
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
                await self._install(SnapshotId(*effect.snapshot))
            case _:
                assert_never(effect)

    def _send(self, effect: Send) -> None:
        if self._peers is None:
            # A node that is alone never gets here, and starts faster without it.
            from millbeck.server.drivers.raft_peers import RaftPeers

            self._peers = RaftPeers(self.environment, self.settings, node_id=self.node_id, spawn=self._spawn)
        node_id, ask = effect.node_id, effect.ask
        self._peers.send(
            effect.endpoint,
            ask,
            lambda reply: self._deliver(Answered(node_id=node_id, ask=ask, reply=reply)),
        )

    # Changing the log.

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

    def _append_fetched(self, effect: AppendFetched) -> None:
        changes: list[tuple[int, KRaftVersion | Voters]] = []
        before = self.log.end_offset
        try:
            self.log.append_as_follower(
                effect.records, leader_epoch=effect.epoch, now_ms=self.environment.clock.wall_ms()
            )
            for _, _, view in record_batch.split(effect.records, partial_tail=True):
                changes += voter_changes_of(view)
        except (CorruptMessage, UnexpectedAppendOffset) as error:
            # What came is not what follows this log: fetch it again.
            logger.warning("what the quorum's leader sent can not be appended: %s", error)
        appended = tuple(change for change in changes if before <= change[0] < self.log.end_offset)
        self._ensure_flush()
        self._events.appendleft(LogAppended(end_offset=self.log.end_offset, changes=appended))

    async def _truncate(self, offset: int) -> None:
        async with self._flush_lock:
            removals = await truncate(self.log, offset, self._in_thread, self._flush_once)
            await self._flush_rest()
        logger.info("the metadata log was cut to offset %d, where it leaves the leader's", self.log.end_offset)
        for removal in removals:
            await run_off_loop(self.environment.threads, removal.run)
        self._told_flushed_offset = self.log.flushed_offset
        self._events.appendleft(LogTruncated(end_offset=self.log.end_offset))

    async def _install(self, snapshot_id: SnapshotId) -> None:
        files, threads, directory = self.environment.files, self.environment.threads, self.log.directory
        try:
            found = await run_off_loop(threads, metadata_files.finish_snapshot, files, directory, snapshot_id)
        except MetadataFault as error:
            logger.warning("the snapshot that was fetched is damaged, and is fetched again: %s", error)
            self._events.appendleft(LogTruncated(end_offset=self.log.end_offset))
            return
        async with self.commits.replay.is_reading, self._flush_lock:
            removals = await truncate(
                self.log, snapshot_id.end_offset, self._in_thread, self._flush_once, starts_over=True
            )
            await self._flush_rest()
            self.snapshots.found([found.kept], start_epoch=snapshot_id.epoch)
            self.commits.replay.begin_with(found)
        for removal in removals:
            await run_off_loop(threads, removal.run)
        await run_off_loop(threads, metadata_files.remove_snapshots_before, files, directory, snapshot_id)
        version, voters = found.content.kraft_version, found.content.voters
        self._told_flushed_offset = self.log.flushed_offset
        self._events.appendleft(
            SnapshotInstalled(
                end_offset=snapshot_id.end_offset,
                kraft_version=version,
                voters=VoterSet.of(voters.voters) if version >= 1 and voters is not None else None,
            )
        )

    async def _in_thread(self, job: Callable[[], T], /) -> T:
        return await run_off_loop(self.environment.threads, job)

    def _voters_at(self, end_offset: int) -> tuple[int, Voters | None]:
        if self.machine is None:
            return 0, None
        version, voters = self.machine.history.at(end_offset)
        return version, voters.record() if version >= 1 else None

    # Becoming durable.

    def _ensure_flush(self) -> None:
        if not self._is_flushing and self.log.flushed_offset < self.log.end_offset:
            self._is_flushing = True
            self._spawn(self._flush_all())

    async def _flush_all(self) -> None:
        """Sync until everything appended is durable; what comes meanwhile is covered by the next round."""
        try:
            while self.failure is None and self._told_flushed_offset < self.log.end_offset:
                async with self._flush_lock:
                    await self._flush_once()
                self._told_flushed_offset = self.log.flushed_offset
                self._deliver(LogFlushed(end_offset=self.log.flushed_offset))
        except Exception as error:
            self._commit_failed(error)
        finally:
            self._is_flushing = False

    async def _flush_once(self) -> None:
        job = self.log.flush_job()
        if job is not None:
            result = await run_off_loop(self.environment.threads, job.run)
            self.log.finish_flush(job, result)
            if result.outcome is not FlushOutcome.DONE:
                raise MetadataFault(f"syncing it {result.outcome.value}: {result.error}")
        elif self.log.flushed_offset < self.log.end_offset:
            raise MetadataFault(f"it ends at {self.log.end_offset} and is durable up to {self.log.flushed_offset} only")

    async def _flush_rest(self) -> None:
        """After a cut: what the log is now counts as flushed before anybody is told where it ends."""
        while self.log.flushed_offset < self.log.end_offset:
            await self._flush_once()

    def _commit_failed(self, error: Exception) -> None:
        logger.error("the metadata log failed", exc_info=error)
        self._fail(f"the metadata log can not be committed: {error}", error)

    def _fail(self, message: str, cause: BaseException) -> MetadataLogFailed:
        if self.failure is None:
            logger.critical("%s", message)
            self.statistics.fault_count += 1
            self.failure = MetadataLogFailed(message)
            self.failure.__cause__ = cause
            self.snapshots.stop()
            self._close()
            self._on_fatal(self.failure)
        return self.failure
