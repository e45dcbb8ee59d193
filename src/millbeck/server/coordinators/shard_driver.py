"""A coordinator's shard on the partition that keeps it: loaded from the log, written through it, timed by the loop.

`ShardDriver` gives the pure `ShardHost` what it cannot have by itself. Appends are staged like any other and settle in
the same turn of the loop, when the high watermark has passed them or the write has failed. Loading reads the log on a
thread, chunk by chunk, and replays for at most 5 ms before the loop gets its turn; until it is over, every request is
answered with COORDINATOR_LOAD_IN_PROGRESS. A new leader may know of less that is committed than the one before it did:
loading is over when everything that was loaded is, since what was acknowledged there must be seen here. What the host
raises by mistake never reaches the partition.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Generic, TypeVar

from millbeck.coordinator.runtime.host import Entry, Producer, ShardHost, State, TransactionEnd
from millbeck.coordinator.runtime.loader import Loader
from millbeck.coordinator.runtime.shard import Shard
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, MessageTooLarge, NotEnoughReplicasAfterAppend
from millbeck.kernel.timeline import SnapshotRegistry
from millbeck.kernel.timer_wheel import Timer
from millbeck.records import batch, control
from millbeck.records.compression import Codec
from millbeck.records.record import UNASSIGNED, Record
from millbeck.records.validation import Validated
from millbeck.replication.partition import Partition
from millbeck.server.deadlines import Deadlines
from millbeck.server.off_loop import run_off_loop
from millbeck.server.turns import Turns
from millbeck.storage.producer_state import Origin
from millbeck.storage.reading import LogSlice
from millbeck.storage.segment import ColdRead
from millbeck.storage.staging import Staged

logger = logging.getLogger(__name__)

R = TypeVar("R")
S = TypeVar("S", bound=Shard[Any])

NO_APPEND_TIME = -1


class ShardDriver(Generic[S, R]):
    """One shard; it is also the host's appender and scheduler."""

    def __init__(
        self,
        partition: Partition,
        build: Callable[[SnapshotRegistry, Timers[R]], S],
        *,
        environment: Environment,
        deadlines: Deadlines,
        commit_timeout_ms: int,
        load_size_bytes: int,
        codec: Codec = Codec.NONE,
        is_compacted: bool = True,
    ) -> None:
        """``is_compacted`` says that of a key only the latest record counts, so that loading may skip the others."""
        self.partition = partition
        self._is_compacted = is_compacted
        self._environment = environment
        self._deadlines = deadlines
        self._load_size_bytes = load_size_bytes
        self._codec = codec
        self.load_seconds = 0.0
        self._awaited_offset: int | None = None
        self.host: ShardHost[S, R] = ShardHost(
            build, appender=self, scheduler=self, commit_timeout_ms=commit_timeout_ms
        )

    def start(self, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        """Load the shard; an empty log is loaded at once."""
        self.partition.watchers[self] = None
        log = self.partition.log
        if log.log_start_offset == log.end_offset:
            self._loaded(log.end_offset)
        else:
            spawn(self._load())

    def stop(self) -> None:
        """The partition is led elsewhere, or goes away."""
        self.partition.watchers.pop(self, None)
        self.host.close()

    def readable_grew(self, partition: Partition) -> None:
        """Replicas have confirmed more, perhaps of what was in the log before this shard was loaded."""
        if self._awaited_offset is not None:
            self._loaded(self._awaited_offset)
        self.host.high_watermark_moved(partition.high_watermark, self._environment.clock.wall_ms())

    # Appender

    @property
    def batch_size_bytes_max(self) -> int:
        return self.partition.log.config.max_message_bytes - batch.HEADER_SIZE

    def append(self, entries: Sequence[Entry], now_ms: int, producer: Producer | None = None) -> int:
        producer_id, producer_epoch = producer or (batch.NO_PRODUCER_ID, batch.NO_PRODUCER_EPOCH)
        data = batch.build(
            [Record(UNASSIGNED, now_ms, key, value) for key, value in entries],
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=producer is not None,
        )
        if len(data) > self.partition.log.config.max_message_bytes:
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
        validated = Validated(data, header, header.max_timestamp, record_count, NO_APPEND_TIME)
        # Settling comes in a later step of the turn, when the offset is known.
        staged: Staged = self.partition.append(
            validated,
            wants_all=True,
            now_ms=now_ms,
            settle=lambda error: self._settled(staged, error),
            origin=Origin.COORDINATOR,
            transaction_version=transaction_version,
        )
        return staged.first_offset

    def _settled(self, staged: Staged, error: ApiError | None) -> None:
        now_ms = self._environment.clock.wall_ms()
        if error is None:
            self.host.high_watermark_moved(self.partition.high_watermark, now_ms)
        elif isinstance(error, NotEnoughReplicasAfterAppend):
            # The records stay where they are and count when replicas have come back; whoever waits has a deadline.
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
            while offset < end_offset and self.host.state is State.LOADING:
                chunk = await self._read(offset, end_offset)
                if chunk is None:
                    break
                skipping_offset = self.partition.high_watermark if self._is_compacted else 0
                loader = Loader(self.host.shard, _batches_of(chunk), self._reached, skipping_offset)
                await self._replay(loader)
                offset = loader.next_offset
        except Exception:
            logger.exception("%s cannot be loaded; its coordinator stays unavailable", self.partition.name)
            if self.host.state is State.LOADING:
                self.host.load_failed()
            return
        if self.host.state is State.LOADING:
            self.load_seconds = clock.monotonic() - started
            self._loaded(end_offset)

    def _reached(self, offset: int) -> None:
        self.host.reached(offset, self.partition.high_watermark)

    def _loaded(self, end_offset: int) -> None:
        """Take operations, as soon as all that was loaded is committed."""
        if self.host.state is not State.LOADING:
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
        turns = Turns(self._environment.clock)
        while self.host.state is State.LOADING and not loader.advance():
            await turns.give_way()


def _batches_of(chunk: bytes) -> Iterator[memoryview]:
    for found in batch.split(chunk):
        yield found.data
