"""Process many records of few partitions at the same time, in order by key, and commit only processed ones.

    processor = ParallelProcessor(consumer, handle, concurrency=100)
    await processor.run(["orders"])

Records with the same key of a partition are handled one after the other, all others at the same time, up to
``concurrency``. The offset committed for a partition is that of its oldest record that is not done, so after a crash no
record is lost, and those handled since the last commit are handled again. While ``buffered_max`` records wait, the
partitions are paused; the consumer stays in its group. Partitions that are taken away are finished first: their running
records end, those that wait are left to the next owner.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Final, Generic, Literal, TypeVar

from millbeck.client.consumer import Consumer
from millbeck.client.consumer.listener import Partitions, RebalanceListener
from millbeck.kernel.errors import ApiError, InvalidConfig
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record

log = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")

Handler = Callable[[Record[K, V]], Awaitable[None]]
Order = Literal["key", "partition", "none"]

_POLL_SECONDS: Final = 0.5


class _Progress(Generic[K, V]):
    """The records of one partition that are not committed yet."""

    def __init__(self) -> None:
        self.offsets: deque[int] = deque()
        """Offsets taken and not passed by `committable`, in order."""
        self.done: set[int] = set()
        self.running_count = 0
        self.is_revoked = False
        self.end_offset = -1
        self.committed = -1

    def take(self, offset: int) -> None:
        self.offsets.append(offset)
        self.end_offset = offset + 1

    def finish(self, offset: int) -> None:
        self.done.add(offset)
        while self.offsets and self.offsets[0] in self.done:
            self.done.remove(self.offsets.popleft())

    @property
    def committable(self) -> int:
        """The offset of the oldest record that is not done; -1 if none was taken."""
        return self.offsets[0] if self.offsets else self.end_offset


_Lane = deque[tuple[_Progress[K, V], Record[K, V]]]


class ParallelProcessor(Generic[K, V]):
    def __init__(
        self,
        consumer: Consumer[K, V],
        handle: Handler[K, V],
        *,
        concurrency: int = 64,
        order: Order = "key",
        buffered_max: int | None = None,
        drain_timeout_s: float = 30.0,
    ) -> None:
        """``order`` says which records follow each other: those of one key, those of one partition, or none.

        Records without a key follow no other when the order is by key. ``buffered_max`` is 20 times the concurrency
        unless given. ``drain_timeout_s`` limits the wait for running records of a revoked partition.
        """
        if consumer.config.enable_auto_commit:
            raise InvalidConfig("ParallelProcessor needs enable.auto.commit=false: it commits what is done itself")
        if concurrency < 1:
            raise ValueError("concurrency is at least 1")
        if order not in ("key", "partition", "none"):
            raise ValueError(f"order is key, partition or none, not {order!r}")
        self._consumer = consumer
        self._handle = handle
        self._concurrency = concurrency
        self._order = order
        self._buffered_max = buffered_max or 20 * concurrency
        self._drain_timeout_s = drain_timeout_s
        self._progress: dict[TopicPartition, _Progress[K, V]] = {}
        self._lanes: dict[Hashable, _Lane[K, V]] = {}
        """Records in the order of their key, by key; the first of a lane may be running."""
        self._ready: deque[Hashable] = deque()
        """Lanes whose first record may start."""
        self._workers: set[asyncio.Task[None]] = set()
        self._buffered_count = 0
        self._is_paused = False
        self._is_stopping = False
        self._failure: Exception | None = None
        self._ended = asyncio.Event()
        """Set whenever a record is done."""

    async def run(self, topics: Iterable[str]) -> None:
        """Subscribe and process until `stop`, an error of ``handle``, which is raised, or cancellation."""
        self._consumer.subscribe(topics, listener=_Listener(self))
        loop = asyncio.get_running_loop()
        interval_s = self._consumer.config.auto_commit_interval_ms / 1000
        due_s = loop.time() + interval_s
        try:
            while not self._is_stopping and self._failure is None:
                self._bound()
                for partition, records in (await self._consumer.poll(timeout_s=_POLL_SECONDS)).items():
                    self._take(partition, records)
                if loop.time() >= due_s:
                    await self._commit(list(self._progress))
                    due_s = loop.time() + interval_s
            self._drop_waiting(list(self._progress))
            await self._drain(list(self._progress.values()))
            if self._failure is not None:
                raise self._failure
        finally:
            workers = list(self._workers)
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await self._commit(list(self._progress))

    def stop(self) -> None:
        """Finish the records that are running, commit, and let `run` return."""
        self._is_stopping = True

    @property
    def buffered_count(self) -> int:
        """The records that are waiting or running."""
        return self._buffered_count

    # records

    def _bound(self) -> None:
        """Pause all partitions while too many records wait."""
        if self._buffered_count >= self._buffered_max:
            self._is_paused = True
            self._consumer.pause(*self._consumer.assignment)
        elif self._is_paused and self._buffered_count <= self._buffered_max // 2:
            self._is_paused = False
            self._consumer.resume(*self._consumer.paused)

    def _take(self, partition: TopicPartition, records: list[Record[K, V]]) -> None:
        progress = self._progress.get(partition)
        if progress is None:
            progress = self._progress[partition] = _Progress()
        for record in records:
            progress.take(record.offset)
            lane_key = self._lane_of(record)
            lane = self._lanes.get(lane_key)
            if lane is None:
                lane = self._lanes[lane_key] = deque()
                self._ready.append(lane_key)
            lane.append((progress, record))
        self._buffered_count += len(records)
        for _ in range(min(len(self._ready), self._concurrency - len(self._workers))):
            worker = asyncio.get_running_loop().create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def _lane_of(self, record: Record[K, V]) -> Hashable:
        place = (record.topic, record.partition)
        if self._order == "partition":
            return place
        if self._order == "none" or record.key is None:
            return (*place, record.offset, None)
        return (*place, record.key)

    async def _work(self) -> None:
        """Handle the first record of one ready lane after another."""
        while self._ready and self._failure is None:
            lane_key = self._ready.popleft()
            lane = self._lanes[lane_key]
            if not lane:
                del self._lanes[lane_key]
                continue
            progress, record = lane.popleft()
            progress.running_count += 1
            try:
                await self._handle(record)
                progress.finish(record.offset)
            except Exception as error:
                self._failure = self._failure or error
            finally:
                progress.running_count -= 1
                self._buffered_count -= 1
                self._ended.set()
                if lane:
                    self._ready.append(lane_key)
                else:
                    del self._lanes[lane_key]
            if self._is_paused:
                self._bound()

    def _drop_waiting(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget records that have not started: their offsets are not committed."""
        dropped = [found for partition in partitions if (found := self._progress.get(partition)) is not None]
        for lane in self._lanes.values():
            kept = [(progress, record) for progress, record in lane if progress not in dropped]
            self._buffered_count -= len(lane) - len(kept)
            lane.clear()
            lane.extend(kept)

    async def _drain(self, waited: list[_Progress[K, V]]) -> None:
        """Wait until none of these records is running, for up to the drain timeout."""
        try:
            async with asyncio.timeout(self._drain_timeout_s):
                while any(progress.running_count for progress in waited):
                    self._ended.clear()
                    await self._ended.wait()
        except TimeoutError:
            count = sum(progress.running_count for progress in waited)
            log.warning("%d records still run after %s s; they will be handled again", count, self._drain_timeout_s)

    # offsets

    async def _commit(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit processed records; a failure is only logged, because the next commit includes them."""
        offsets = {
            partition: progress.committable
            for partition in partitions
            if (progress := self._progress.get(partition)) is not None and progress.committable > progress.committed
        }
        if not offsets:
            return
        try:
            await self._consumer.commit(offsets)
        except ApiError as error:
            log.warning("commit of %d partitions failed: %s", len(offsets), error)
            return
        for partition, offset in offsets.items():
            if partition in self._progress:
                self._progress[partition].committed = offset

    async def release(self, partitions: Partitions) -> None:
        """Finish and commit partitions that are taken away."""
        self._drop_waiting(partitions)
        await self._drain([self._progress[partition] for partition in partitions if partition in self._progress])
        await self._commit(partitions)
        self.forget(partitions)

    def forget(self, partitions: Partitions) -> None:
        """Drop partitions that another member may already own; records still being processed are not committed."""
        self._drop_waiting(partitions)
        for partition in partitions:
            self._progress.pop(partition, None)


class _Listener(RebalanceListener):
    def __init__(self, processor: ParallelProcessor[K, V]) -> None:
        self._processor = processor

    def on_revoked(self, partitions: Partitions) -> Awaitable[None]:
        return self._processor.release(partitions)

    def on_lost(self, partitions: Partitions) -> None:
        self._processor.forget(partitions)
