"""The record accumulator: a queue of batches per partition, bounded by ``buffer.memory``."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from millbeck.client.errors import BufferExhausted
from millbeck.client.producer.batch import ProducerBatch, RecordFuture
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.partition_queue import PartitionQueue, ProducerIdState
from millbeck.kernel.errors import MessageTooLarge
from millbeck.kernel.ids import TopicPartition
from millbeck.records.batch import HEADER_SIZE
from millbeck.records.builder import BatchBuilder
from millbeck.records.compression import CODEC_NAMES
from millbeck.records.record import Header

_RECORD_OVERHEAD_MAX: Final = 36
"""Upper bound for the length, attributes, deltas and the lengths of key, value and headers of a record."""
_HEADER_OVERHEAD_MAX: Final = 10
KEPT_OVERHEAD: Final = 420
"""The memory of a record beside its bytes: its future, the metadata it completes with, its parts in the batch."""


def record_size_max(key: bytes | None, value: bytes | None, headers: tuple[Header, ...]) -> int:
    """An upper bound of the record's size in a batch; raises TypeError for invalid types."""
    if (value is not None and value.__class__ is not bytes) or (key is not None and key.__class__ is not bytes):
        what, wrong = ("key", key) if key is not None and key.__class__ is not bytes else ("value", value)
        raise TypeError(f"the {what} is {type(wrong).__name__} and must be bytes: encode it, or set {what}.serializer")
    size = _RECORD_OVERHEAD_MAX + (len(key) if key else 0) + (len(value) if value else 0)
    for name, header_value in headers:
        if not isinstance(name, str) or not (header_value is None or isinstance(header_value, bytes)):
            raise TypeError("a header is a name (str) and a value (bytes or None)")
        # UTF-8 takes at most four bytes per character.
        size += _HEADER_OVERHEAD_MAX + 4 * len(name) + (len(header_value) if header_value else 0)
    return size


class RecordAccumulator:
    """Collects records into batches. The caller reserves memory before it appends a record; the memory is released
    when the batch completes."""

    def __init__(self, config: ProducerConfig) -> None:
        self.codec = CODEC_NAMES[config.compression_type]
        self.level = config.compression_level
        self.identities = ProducerIdState() if config.enable_idempotence else None
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        """Partitions with batches waiting or in flight."""
        self.is_flushing = False
        """Whether to send all batches, full or not."""
        self._config = config
        self._batch_size = max(config.batch_size, 1)
        self._used_bytes = 0
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._served_count = 0
        """Callers whose memory is reserved, and that append their record when they run next."""
        self._idle: dict[TopicPartition, PartitionQueue] = {}

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    @property
    def waiter_count(self) -> int:
        """The callers that wait for memory."""
        return len(self._waiters)

    @property
    def is_exhausted(self) -> bool:
        """Whether a caller waits for memory: then batches are sent before they are full."""
        return bool(self._waiters)

    # memory

    @property
    def size_bytes_max(self) -> int:
        """The largest record that can be sent (`check_size`)."""
        config = self._config
        return min(config.max_request_size - HEADER_SIZE, config.buffer_memory - KEPT_OVERHEAD)

    def check_size(self, size_bytes: int) -> None:
        """Raise `MessageTooLarge` for a record that can never be sent."""
        limit = self._config.max_request_size
        if size_bytes + HEADER_SIZE > limit:
            raise MessageTooLarge(
                f"a record of up to {size_bytes + HEADER_SIZE} bytes is larger than max.request.size, which is {limit}"
            )
        if size_bytes + KEPT_OVERHEAD > self._config.buffer_memory:
            raise MessageTooLarge(
                f"a record of up to {size_bytes} bytes is larger than buffer.memory, "
                f"which is {self._config.buffer_memory}"
            )

    def try_reserve(self, size_bytes: int) -> bool:
        """Reserve memory for a record if enough is free and no caller waits; never exceeds the limit."""
        used_bytes = self._used_bytes + size_bytes + KEPT_OVERHEAD
        if self._waiters or self._served_count or used_bytes > self._config.buffer_memory:
            return False
        self._used_bytes = used_bytes
        return True

    async def reserve(self, size_bytes: int, timeout_s: float) -> None:
        """Wait for memory for a record, in order of arrival; raises `BufferExhausted`.

        A caller appends its record before it waits for anything else: until then no other caller can overtake it.
        """
        if self.try_reserve(size_bytes):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size_bytes, turn)
        self._waiters.append(entry)
        try:
            async with asyncio.timeout(timeout_s):
                await turn
            self._served_count -= 1
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._served_count -= 1
                self.drop(size_bytes)
            else:
                self._waiters.remove(entry)
                self._serve_waiters()
            if isinstance(error, TimeoutError):
                raise BufferExhausted(
                    f"buffer.memory ({self._config.buffer_memory} bytes) was full for {round(timeout_s * 1000)} ms"
                ) from error
            raise

    def drop(self, size_bytes: int) -> None:
        """Release the memory of a record that was not appended."""
        self.release(size_bytes + KEPT_OVERHEAD)

    def release(self, size_bytes: int) -> None:
        self._used_bytes -= size_bytes
        self._serve_waiters()

    def _serve_waiters(self) -> None:
        while self._waiters:
            size_bytes, turn = self._waiters[0]
            if self._used_bytes + size_bytes + KEPT_OVERHEAD > self._config.buffer_memory:
                return
            self._waiters.popleft()
            if not turn.done():
                self._used_bytes += size_bytes + KEPT_OVERHEAD
                self._served_count += 1
                turn.set_result(None)

    # records

    def append(
        self,
        partition: tuple[str, int],
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
        future: RecordFuture,
        size_bytes: int,
        now_s: Callable[[], float],
    ) -> bool:
        """Append a record whose memory is reserved; returns whether to wake the sender: a batch is new or full.

        ``partition`` is a `TopicPartition` or a plain tuple, which costs less to make for each record.
        """
        queue = self.queues.get(partition)  # type: ignore[call-overload]
        if queue is None:
            queue = self._wake(TopicPartition(*partition))
        batch = queue.waiting[-1] if queue.waiting else None
        is_news = False
        if batch is None or batch.is_closed or batch.encoded_size_bytes + size_bytes > self._batch_size:
            batch = ProducerBatch(queue.partition, BatchBuilder(self.codec, self.level), now_s())
            batch.append(timestamp, key, value, headers, future)
            queue.add(batch)
            is_news = True
        else:
            batch.append(timestamp, key, value, headers, future)
        batch.size_bytes += size_bytes + KEPT_OVERHEAD
        return is_news or batch.encoded_size_bytes >= self._batch_size

    def add(self, batch: ProducerBatch, size_bytes: int) -> None:
        """Add a batch that is complete, whose memory is reserved."""
        queue = self.queues.get(batch.partition)
        if queue is None:
            queue = self._wake(batch.partition)
        batch.is_closed = True
        batch.size_bytes = size_bytes + KEPT_OVERHEAD
        queue.add(batch)

    def _wake(self, partition: TopicPartition) -> PartitionQueue:
        queue = self._idle.pop(partition, None)
        if queue is None:
            queue = PartitionQueue(partition, self.identities, self._config.max_in_flight)
        self.queues[partition] = queue
        return queue

    def settled(self, batch: ProducerBatch) -> None:
        """Release the memory of a completed batch, which has left its queue."""
        self.release(batch.size_bytes)
        batch.size_bytes = 0
        queue = self.queues.get(batch.partition)
        if queue is not None and queue.is_idle:
            # The sequences are kept and continue when the partition is used again.
            self._idle[batch.partition] = self.queues.pop(batch.partition)

    def queue_length(self, partition: TopicPartition) -> int:
        """The batches of a partition that wait to be sent."""
        queue = self.queues.get(partition)
        return 0 if queue is None else len(queue.waiting)

    def ready_at_s(self, queue: PartitionQueue) -> float:
        """The time at which the first waiting batch of a queue is due; it may be in the past."""
        batch = queue.waiting[0]
        if batch.attempts:
            return batch.not_before_s
        is_full = batch.is_closed or batch.encoded_size_bytes >= self._batch_size
        if is_full or self.is_flushing or self.is_exhausted:
            return 0.0
        return batch.created_s + self._config.linger_ms / 1000

    def batches(self) -> Iterator[ProducerBatch]:
        for queue in self.queues.values():
            yield from queue.batches()
