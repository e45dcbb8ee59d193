"""Run a coordinator shard on its partition: load it from the log, append its records, and drive its timers.

`ShardDriver` connects the I/O-free `ShardRunner` to the log and the clock. Appends are staged like any other. They
complete in the event loop iteration in which the high watermark passes them or the write fails. Loading reads the log
in chunks on a thread and replays for at most 5 ms before it yields to the event loop; meanwhile every request gets
COORDINATOR_LOAD_IN_PROGRESS. A new leader may have a lower high watermark than its predecessor: loading ends only when
all loaded records are committed, since what the predecessor acknowledged must be visible here. Unexpected exceptions of
the `ShardRunner` never reach the partition.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from millbeck.coordinator.runtime.loader import Loader
from millbeck.coordinator.runtime.shard import Shard
from millbeck.coordinator.runtime.shard_runner import Entry, ProducerIdAndEpoch, ShardRunner, ShardState, TransactionEnd
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, MessageTooLarge, NotEnoughReplicasAfterAppend
from millbeck.kernel.isolation import Isolation
from millbeck.kernel.timeline import SnapshotRegistry
from millbeck.kernel.timer_wheel import Timer
from millbeck.records import batch, control
from millbeck.records.compression import Codec
from millbeck.records.record import UNASSIGNED, Record
from millbeck.records.validation import ValidatedBatch
from millbeck.replication.partition import Partition
from millbeck.replication.partition_appends import CallbackAppend
from millbeck.server.loop.deadlines import Deadlines
from millbeck.server.loop.tasks import TimeSlices, run_off_loop
from millbeck.storage.producer_state import AppendOrigin
from millbeck.storage.reading import LogSlice
from millbeck.storage.segment import ColdRead
from millbeck.storage.staging import Staged

logger = logging.getLogger(__name__)

R = TypeVar("R")
S = TypeVar("S", bound=Shard[Any])

NO_APPEND_TIME = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorTopic:
    """The internal topic that stores a coordinator's state, and how it is written and loaded."""

    name: str
    partition_count: int
    """The configured number of partitions; an existing topic's own number takes precedence."""
    commit_timeout_ms: int
    load_buffer_bytes: int
    codec: Codec = Codec.NONE
    is_compacted: bool = True
    """Whether the topic is compacted: only the latest record of a key is relevant, so loading may skip the others."""


class ShardDriver(Generic[S, R]):
    """Drives one shard; it is the appender and scheduler of its `ShardRunner`."""

    def __init__(
        self,
        partition: Partition,
        build: Callable[[SnapshotRegistry, Timers[R]], S],
        topic: CoordinatorTopic,
        *,
        environment: Environment,
        deadlines: Deadlines,
        isolation: Isolation | None = None,
    ) -> None:
        self.partition = partition
        self._is_compacted = topic.is_compacted
        self._environment = environment
        self._deadlines = deadlines
        self._load_size_bytes = topic.load_buffer_bytes
        self._codec = topic.codec
        self.load_seconds = 0.0
        self._awaited_offset: int | None = None
        self.host: ShardRunner[S, R] = ShardRunner(
            build, appender=self, scheduler=self, commit_timeout_ms=topic.commit_timeout_ms, isolation=isolation
        )

    def start(self, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        """Start loading the shard; an empty log needs no loading."""
        self.partition.watchers[self] = None
        log = self.partition.log
        if log.log_start_offset == log.end_offset:
            self._loaded(log.end_offset)
        else:
            spawn(self._load())

    def stop(self) -> None:
        """Unload the shard, because this node no longer leads the partition."""
        self.partition.watchers.pop(self, None)
        self.host.close()

    def readable_end_advanced(self, partition: Partition) -> None:
        """Called when the high watermark has advanced, possibly past records that were in the log before this shard was
        loaded."""
        if self._awaited_offset is not None:
            self._loaded(self._awaited_offset)
        self.host.on_high_watermark_advanced(partition.high_watermark, self._environment.clock.wall_ms())

    # Appender

    @property
    def batch_size_bytes_max(self) -> int:
        return self.partition.log.config.max_message_bytes - batch.HEADER_SIZE

    def append(
        self,
        entries: Sequence[Entry],
        now_ms: int,
        producer: ProducerIdAndEpoch | None = None,
        *,
        is_size_limited: bool = True,
    ) -> int:
        producer_id, producer_epoch = producer or (batch.NO_PRODUCER_ID, batch.NO_PRODUCER_EPOCH)
        data = batch.build(
            [Record(UNASSIGNED, now_ms, key, value) for key, value in entries],
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=producer is not None,
        )
        if is_size_limited and len(data) > self.partition.log.config.max_message_bytes:
            raise MessageTooLarge(f"{self.partition.name}: a coordinator's batch of {len(data)} bytes")
        return self._append(data, len(entries), now_ms)

    def append_marker(self, marker: TransactionEnd, now_ms: int) -> int:
        data = control.marker_batch(
            control.EndTransaction(committed=marker.is_committed, coordinator_epoch=marker.coordinator_epoch),
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp=now_ms,
        )
        return self._append(data, 1, now_ms, marker.transaction_version)

    def _append(self, data: bytes, record_count: int, now_ms: int, transaction_version: int = 0) -> int:
        header = batch.read_header(data)
        validated = ValidatedBatch(data, header, header.max_timestamp, record_count, NO_APPEND_TIME)
        # The callback runs later in this event loop iteration, when the offset is known.
        staged: Staged = self.partition.append(
            validated,
            CallbackAppend(lambda error: self._completed(staged, error)),
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=transaction_version,
        )
        return staged.first_offset

    def _completed(self, staged: Staged, error: ApiError | None) -> None:
        now_ms = self._environment.clock.wall_ms()
        if error is None:
            self.host.on_high_watermark_advanced(self.partition.high_watermark, now_ms)
        elif isinstance(error, NotEnoughReplicasAfterAppend):
            # The records stay in the log and commit when the replicas are back; pending requests have a timeout.
            return
        else:
            self.host.write_failed(staged.first_offset, error, now_ms)

    # Scheduler

    def after(self, delay_ms: int, callback: Callable[[int], None]) -> Timer:
        return self._deadlines.after(delay_ms, lambda: callback(self._environment.clock.wall_ms()))

    # Loading

    async def _load(self) -> None:
        clock = self._environment.clock
        started = clock.monotonic()
        log = self.partition.log
        offset, end_offset = log.log_start_offset, log.end_offset
        try:
            while offset < end_offset and self.host.state is ShardState.LOADING:
                chunk = await self._read(offset, end_offset)
                if chunk is None:
                    break
                skipping_offset = self.partition.high_watermark if self._is_compacted else 0
                loader = Loader(self.host.shard, _batches_of(chunk), self._reached, skipping_offset)
                await self._replay(loader)
                offset = loader.next_offset
        except Exception:
            logger.exception("failed to load %s: its coordinator stays unavailable", self.partition.name)
            if self.host.state is ShardState.LOADING:
                self.host.on_load_failed()
            return
        if self.host.state is ShardState.LOADING:
            self.load_seconds = clock.monotonic() - started
            self._loaded(end_offset)

    def _reached(self, offset: int) -> None:
        self.host.reached(offset, self.partition.high_watermark)

    def _loaded(self, end_offset: int) -> None:
        """Activate the shard once all loaded records are committed."""
        if self.host.state is not ShardState.LOADING:
            return
        if self.partition.high_watermark < end_offset:
            self._awaited_offset = end_offset
            return
        self._awaited_offset = None
        self.host.loaded(
            end_offset=end_offset,
            high_watermark=self.partition.high_watermark,
            now_ms=self._environment.clock.wall_ms(),
        )

    async def _read(self, offset: int, end_offset: int) -> bytes | None:
        found = await self._find(offset, end_offset)
        if found is None:
            return None
        try:
            return await run_off_loop(self._environment.threads, found.file.read, found.size, found.position)
        finally:
            found.release()

    async def _find(self, offset: int, end_offset: int) -> LogSlice | None:
        while True:
            try:
                return self.partition.log.read(
                    offset, size_bytes_max=self._load_size_bytes, upto_offset=end_offset, nowait=True
                )
            except ColdRead as cold:
                try:
                    await run_off_loop(self._environment.threads, cold.job)
                finally:
                    cold.release()

    async def _replay(self, loader: Loader) -> None:
        turns = TimeSlices(self._environment.clock)
        while self.host.state is ShardState.LOADING and not loader.advance():
            await turns.yield_to_loop()


def _batches_of(chunk: bytes) -> Iterator[memoryview]:
    for found in batch.split(chunk):
        yield found.data
