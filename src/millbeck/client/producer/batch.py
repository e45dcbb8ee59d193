"""A batch for one partition: its records, their futures, and the state of its delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import NamedTuple

from millbeck.client.errors import TransactionAborted
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, records_of
from millbeck.records.builder import BatchBuilder, EncodedBatchBuilder
from millbeck.records.compression import Codec
from millbeck.records.record import Header

SEQUENCE_COUNT = 1 << 31
"""Sequence numbers wrap around after the largest signed 32-bit integer."""


class RecordMetadata(NamedTuple):
    """The position of a stored record. ``offset`` is -1 if the broker did not return it: with acks=0, or for an old
    duplicate."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int
    is_transactional: bool = False


NOBODY = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

RecordFuture = asyncio.Future[RecordMetadata]

_new_metadata: Callable[[tuple[str, int, int, int]], RecordMetadata] = partial(tuple.__new__, RecordMetadata)
"""From its fields, for less than a call of the class costs."""


class ProducerBatch:
    """A batch of records: filled until it is closed, then sent until it succeeds or fails."""

    __slots__ = (
        "_builder",
        "attempts",
        "base_sequence",
        "created_s",
        "done",
        "encoded_size_bytes",
        "futures",
        "identity",
        "is_closed",
        "is_over",
        "last_error",
        "not_before_s",
        "order",
        "partition",
        "size_bytes",
        "timestamps",
    )

    def __init__(
        self, partition: TopicPartition, builder: BatchBuilder | EncodedBatchBuilder, created_s: float
    ) -> None:
        self.partition = partition
        self.created_s = created_s
        self.attempts = 0
        self.last_error: ApiError | None = None
        """The error of the last attempt."""
        self.not_before_s = 0.0
        """The earliest time of the next attempt (retry backoff)."""
        self.order: tuple[int, ...] = ()
        """Its order among the partition's batches; the halves of a split batch share it."""
        self.base_sequence = NO_SEQUENCE
        self.identity = NOBODY
        self.is_closed = False
        """Whether the batch is closed: no more records may be added."""
        self.is_over = False
        """Whether all futures are completed."""
        self.size_bytes = 0
        """The bytes of ``buffer.memory`` that it uses."""
        self.futures: list[RecordFuture] = []
        self.timestamps: list[int] = []
        self.done: asyncio.Future[None] | None = None
        self.encoded_size_bytes = builder.size_bytes
        """The size before compression."""
        self._builder = builder

    def __repr__(self) -> str:
        return f"<batch of {self.record_count} for {self.partition} at sequence {self.base_sequence}>"

    @property
    def record_count(self) -> int:
        return len(self.futures)

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    @property
    def next_sequence(self) -> int:
        return (self.base_sequence + self.record_count) % SEQUENCE_COUNT

    def append(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: tuple[Header, ...], future: RecordFuture
    ) -> None:
        assert isinstance(self._builder, BatchBuilder)
        self.encoded_size_bytes = self._builder.append(timestamp, key, value, headers)
        self.futures.append(future)
        self.timestamps.append(timestamp)

    def set_sequence(self, identity: ProducerIdentity, base_sequence: int) -> None:
        self.identity = identity
        self.base_sequence = base_sequence

    def clear_sequence(self) -> None:
        self.identity = NOBODY
        self.base_sequence = NO_SEQUENCE

    def encode(self) -> bytes:
        """The encoded batch; compressed only once, also for retries."""
        self.is_closed = True
        return self._builder.build(
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=self.base_sequence,
            is_transactional=self.identity.is_transactional,
        )

    def succeed(self, base_offset: int, append_time_ms: int) -> None:
        """Complete the futures; no effect on a batch that has completed already."""
        if self.is_over:
            return
        self.is_over = True
        count = len(self.futures)
        offsets = range(base_offset, base_offset + count) if base_offset >= 0 else repeat(-1)
        timestamps = repeat(append_time_ms) if append_time_ms >= 0 else self.timestamps
        results = zip(repeat(self.partition.topic), repeat(self.partition.partition), offsets, timestamps)
        for future, result in zip(self.futures, map(_new_metadata, results), strict=False):
            if not future.done():
                future.set_result(result)
        self._complete()

    def fail(self, error: Exception) -> None:
        if self.is_over:
            return
        self.is_over = True
        for future in self.futures:
            if not future.done():
                future.set_exception(error)
                if isinstance(error, TransactionAborted):
                    # After an abort the caller knows the outcome, so an unread exception must not be logged.
                    future.exception()
        self._complete()

    def _complete(self) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_result(None)

    def halves(self, codec: Codec, level: int | None) -> list[ProducerBatch]:
        """Split a batch that is too large for the broker into two with the same records."""
        records = records_of(self.encode(), check_crc=False)
        middle = len(records) // 2
        parts: list[ProducerBatch] = []
        for start, stop in ((0, middle), (middle, len(records))):
            part = ProducerBatch(self.partition, BatchBuilder(codec, level), self.created_s)
            for index in range(start, stop):
                record = records[index]
                part.append(record.timestamp, record.key, record.value, record.headers, self.futures[index])
            part.size_bytes = self.size_bytes // 2 if start else self.size_bytes - self.size_bytes // 2
            part.is_closed = True
            parts.append(part)
        # Waiters of this batch wait for the second half, which never completes before the first.
        parts[-1].done, self.done = self.done, None
        self.is_over = True
        return parts
