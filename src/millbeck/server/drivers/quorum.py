"""The quorum's driver: it owns the metadata log, and everything that is committed goes through it.

`QuorumDriver.submit` takes a decision, a function of the latest appended image. Its records are appended at once and
make the image that the next decision sees; the caller waits until they are on disk. Appends that come while a sync runs
share the next one. When the high watermark passes a batch, its image and delta are published to the subscribers, in
order, and only then are the callers answered.

At start the newest snapshot and the log after it make the first image; the node raises its epoch, has its vote and then
its leadership on disk, and appends a LeaderChange. An empty log gets the bootstrap records. The first image is
published when all of that is committed.

A metadata log that can not be written or synced, or a subscriber that can not take what is committed, leave a node that
no longer does what the log says: `MetadataLogFailed` goes to ``on_fatal`` and to every caller, and the process is
expected to end. NoOp records are not written (docs/adr/0003-no-noop-records.md).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

from millbeck.controller.result import RECORD_COUNT_MAX, Result
from millbeck.kernel.deferred import DeferredQueue
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, NotController, PolicyViolation, UnknownServerError
from millbeck.metadata.batches import BatchTooLarge, control_batch, data_batch
from millbeck.metadata.delta import MetadataDelta, advance
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.features import LATEST_METADATA_VERSION, METADATA_TRANSACTIONS_FROM, METADATA_VERSION
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from millbeck.raft.effects import AppendLeaderChange, Effect, MoveHighWatermark, PersistState
from millbeck.raft.events import LogFlushed, ShutdownRequested, Started
from millbeck.raft.machine import QuorumMachine, QuorumNotSupported
from millbeck.raft.quorum_state import QuorumStateFault
from millbeck.raft.voters import Leader
from millbeck.server.decision_statistics import DecisionStatistics
from millbeck.server.drivers import metadata_files
from millbeck.server.drivers.metadata_loading import load
from millbeck.server.drivers.metadata_snapshots import MetadataSnapshots, SnapshotOptions
from millbeck.server.drivers.quorum_settings import QuorumSettings
from millbeck.server.off_loop import run_off_loop
from millbeck.storage.atomic_file import parent_of
from millbeck.storage.flush import FlushOutcome
from millbeck.storage.log import Log
from millbeck.storage.producer_state import Origin

T = TypeVar("T")

Subscriber = Callable[[MetadataImage, MetadataDelta], Awaitable[None]]
"""It may give way to the loop while it applies a large change; the next image comes when it is through."""

LeadershipListener = Callable[[int], None]
"""Told of the epoch in which this node begins or ceases to be the active controller."""

LeaderListener = Callable[[Leader], None]

logger = logging.getLogger(__name__)


class MetadataLogFailed(Exception):
    """The metadata log can not be read, written or synced, or can not be obeyed: the process must end."""


class _Appended(NamedTuple):
    """A batch that is not committed yet, and the image it makes."""

    end_offset: int
    image: MetadataImage
    delta: MetadataDelta
    size_bytes: int


class QuorumDriver:
    """``image`` is the committed one; ``machine``, ``log`` and ``snapshots`` are there to be looked at."""

    def __init__(
        self,
        environment: Environment,
        log: Log,
        *,
        node_id: int,
        voters: tuple[int, ...],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        on_fatal: Callable[[MetadataLogFailed], None],
        snapshot_options: SnapshotOptions | None = None,
        settings: QuorumSettings | None = None,
    ) -> None:
        """``voters`` is this node alone, or empty when ``settings`` says who votes."""
        self.environment = environment
        self.log = log
        self.node_id = node_id
        self.settings = settings or QuorumSettings()
        self.image: MetadataImage = EMPTY
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
        )
        self._appended_image: MetadataImage = EMPTY
        self._uncommitted: deque[_Appended] = deque()
        # Bounded by the connections: each has at most one request that waits for the controller.
        self._waiting: DeferredQueue[asyncio.Future[None]] = DeferredQueue()
        self._subscribers: list[Subscriber] = []
        self._on_gained: list[LeadershipListener] = []
        self._on_lost: list[LeadershipListener] = []
        self._on_leader: list[LeaderListener] = []
        self._published_offset = 0
        self._is_flushing = False
        self._is_stopped = False

    @property
    def epoch(self) -> int:
        return -1 if self.machine is None else self.machine.epoch

    @property
    def high_watermark(self) -> int:
        return -1 if self.machine is None else self.machine.high_watermark

    @property
    def leader(self) -> Leader:
        """The quorum's leader as this node knows it, for forwarding and for the replies that name the controller."""
        if not self.is_active:
            return Leader(epoch=max(self.epoch, 0))
        endpoint = next(iter(self.settings.listeners), None)
        return Leader(node_id=self.node_id, epoch=self.epoch, endpoint=endpoint)

    @property
    def is_active(self) -> bool:
        """Whether `submit` takes decisions here: this node leads, and a record of its epoch is committed."""
        return not self._is_stopped and self.machine is not None and self.machine.is_leader

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

    async def wait_caught_up(self) -> None:
        """Until a leader is known and what it had committed by then is published here. Raises `MetadataLogFailed`."""
        await self._wait_committed(self.log.end_offset)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Be told of every committed image, from the first one on when this is called before `start`."""
        self._subscribers.append(subscriber)

    async def start(self) -> None:
        """Load and take part. A node that is alone leads and has published the first image when this returns.

        Any other returns as soon as its own log is loaded: see `wait_caught_up`. The controller's listener must be
        bound by then, since the others cannot elect without it. Raises `MetadataLogFailed`.
        """
        try:
            await self._lead()
        except (MetadataFault, QuorumStateFault, QuorumNotSupported, OSError, ApiError) as error:
            raise self._fail(f"the metadata log in {self.log.directory} can not be opened: {error}", error) from error
        await self._wait_committed(self.log.end_offset)
        for gained in self._on_gained:
            gained(self.epoch)
        for listener in self._on_leader:
            listener(self.leader)

    async def submit(self, decide: Callable[[MetadataImage], Result[T]]) -> T:
        """Carry out a decision; returns its response once everything it was based on is committed.

        Raises whatever ``decide`` raises, and then nothing has changed; `NotController` when this node does not lead;
        `MetadataLogFailed` when the log failed, so that the outcome is not known.
        """
        if self.failure is not None:
            raise self.failure
        if self._is_stopped or self.machine is None or not self.machine.is_leader:
            raise NotController
        clock = self.environment.clock
        began_s = clock.monotonic()
        result = decide(self._appended_image)
        self._append(result.records, is_atomic=result.is_atomic)
        self.statistics.decided(clock.monotonic() - began_s)
        await self._wait_committed(self.log.end_offset)
        return result.response

    async def stop(self) -> None:
        """Take no more decisions and let those that were taken be committed. Raises `MetadataLogFailed`."""
        self._is_stopped = True
        self.snapshots.stop()
        if self.machine is not None:
            await self._wait_committed(self.log.end_offset)
            self.machine.step(ShutdownRequested())

    # Starting.

    async def _lead(self) -> None:
        files, directory = self.environment.files, self.log.directory
        loaded = load(files, self.log)
        self._appended_image = loaded.image
        self.snapshots.newest_id = loaded.snapshot_id
        self._uncommitted.append(_Appended(self.log.end_offset, loaded.image, loaded.delta, loaded.tail_bytes))
        if self.log.end_offset == 0:
            # A vote in a directory whose own name is not durable would be no vote.
            await run_off_loop(self.environment.threads, files.sync_directory, parent_of(directory))
        state = metadata_files.read_quorum_state(files, directory)
        self.machine = QuorumMachine(node_id=self.node_id, voters=self._voters, state=state)
        started = Started(log_end_offset=self.log.end_offset, log_last_epoch=max(loaded.image.epoch, 0))
        for effect in self.machine.step(started):
            await self._perform_at_start(effect)
        if self._appended_image.open_transaction is not None:
            self._append([AbortTransactionRecord(reason="A new controller has started.")], is_atomic=True)
        if self._appended_image.features.metadata_version == 0:
            self._append(self._bootstrap(), is_atomic=True)

    async def _perform_at_start(self, effect: Effect) -> None:
        match effect:
            case PersistState():
                files, directory = self.environment.files, self.log.directory
                await run_off_loop(
                    self.environment.threads, metadata_files.write_quorum_state, files, directory, effect.state
                )
            case AppendLeaderChange():
                now_ms = self.environment.clock.wall_ms()
                offset = self.log.end_offset
                image, delta = advance(self._appended_image, [], offset=offset, epoch=effect.epoch, timestamp_ms=now_ms)
                batch = control_batch([effect.value], base_offset=offset, epoch=effect.epoch, timestamp_ms=now_ms)
                self._write(batch, image, delta, now_ms)
            case MoveHighWatermark():
                raise AssertionError("nothing is committed before the first append")

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

    # Appending and committing.

    def _append(self, records: list[MetadataRecord], *, is_atomic: bool) -> None:
        """Append records and make the image of them; nothing has changed when an `ApiError` is raised."""
        chunk = len(records) if is_atomic else RECORD_COUNT_MAX
        for start in range(0, len(records), chunk or 1):
            part = records[start : start + chunk]
            now_ms = self.environment.clock.wall_ms()
            offset = self.log.end_offset
            try:
                # The image first: a record that can not be replayed must never get into the log.
                image, delta = advance(
                    self._appended_image, part, offset=offset + len(part) - 1, epoch=self.epoch, timestamp_ms=now_ms
                )
                batch = data_batch(
                    part,
                    base_offset=offset,
                    epoch=self.epoch,
                    timestamp_ms=now_ms,
                    metadata_version=self._appended_image.features.metadata_version or LATEST_METADATA_VERSION,
                )
            except BatchTooLarge as error:
                raise PolicyViolation(f"The change is too large to be made at once: {error}") from error
            except MetadataFault as error:
                self.statistics.fault_count += 1
                logger.exception("a decision contradicts the image it was made on")
                raise UnknownServerError(str(error)) from error
            self._write(batch, image, delta, now_ms)

    def _write(self, batch: bytes, image: MetadataImage, delta: MetadataDelta, now_ms: int) -> None:
        try:
            self.log.stage(batch, leader_epoch=self.epoch, now_ms=now_ms, origin=Origin.QUORUM)
            self.log.write_staged()
        except ApiError as error:
            raise self._fail(f"the metadata log can not be written: {error}", error) from error
        assert image.offset == self.log.end_offset - 1, "the image and the log have come apart"
        self._appended_image = image
        self._uncommitted.append(_Appended(self.log.end_offset, image, delta, len(batch)))
        if not self._is_flushing:
            self._is_flushing = True
            self._spawn(self._flush_all())

    async def _flush_all(self) -> None:
        """Sync until everything appended is durable; what comes meanwhile is covered by the next round."""
        try:
            while self.failure is None and (self._uncommitted or self.high_watermark < self.log.end_offset):
                async with self._flush_lock:
                    await self._flush_once()
                await self._publish(self.high_watermark)
        except Exception as error:
            logger.exception("the metadata log failed")
            self._fail(f"the metadata log can not be committed: {error}", error)
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
        assert self.machine is not None
        for effect in self.machine.step(LogFlushed(end_offset=self.log.flushed_offset)):
            assert isinstance(effect, MoveHighWatermark)

    async def _publish(self, high_watermark: int) -> None:
        """Tell the subscribers what is committed, one image after another, then answer who waited for it."""
        while self._uncommitted and self._uncommitted[0].end_offset <= high_watermark:
            appended = self._uncommitted.popleft()
            self.image = appended.image
            for subscriber in self._subscribers:
                await subscriber(appended.image, appended.delta)
            self.snapshots.committed(appended.image, appended.size_bytes)
            self._published_offset = appended.end_offset
            for future in self._waiting.pop_until(appended.end_offset):
                if not future.done():
                    future.set_result(None)

    async def _wait_committed(self, end_offset: int) -> None:
        """Wait until everything below ``end_offset`` is committed and published."""
        if self.failure is not None:
            raise self.failure
        if self._published_offset < end_offset:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.park(end_offset, future)
            await future

    def _fail(self, message: str, cause: BaseException) -> MetadataLogFailed:
        if self.failure is None:
            logger.critical("%s", message)
            self.statistics.fault_count += 1
            self.failure = MetadataLogFailed(message)
            self.failure.__cause__ = cause
            self.snapshots.stop()
            for future in self._waiting.pop_until(self.log.end_offset):
                if not future.done():
                    future.set_exception(self.failure)
            self._on_fatal(self.failure)
        return self.failure
