"""Writes a share's records to the log: collected by partition, sent when a batch is full."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from millbeck.client.producer.bulk import BatchProducer
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.errors import ConnectError
from millbeck.pipeline.connect.tasks.conversion import EncodedRecord
from millbeck.records.native.write import PayloadWriter
from millbeck.records.partitioning import partition_for_key

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]

BATCH_BYTES: Final = 256 * 1024
_RECORD_BYTES: Final = 32
"""Of a record without key, value and headers, at most; a header has less than half of it."""


class LogWriter:
    """Writes with one producer, which `finish` waits for. ``run`` runs a coroutine until it is done."""

    def __init__(
        self, producer: BatchProducer, run: Run, wall_ms: Callable[[], int], *, first_keyless: int, batch_bytes: int
    ) -> None:
        self._producer = producer
        self._run = run
        self._wall_ms = wall_ms
        self._batch_bytes = batch_bytes
        self._open: dict[TopicPartition, PayloadWriter] = {}
        self._counts: dict[str, int] = {}
        self._keyless = first_keyless
        self.byte_count = 0

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(self._counts)

    def has_seen(self, topic: str) -> bool:
        return topic in self._counts

    def write(self, record: EncodedRecord) -> None:
        """Add a record; sends what is full. Raises `ApiError`, also of a batch sent before."""
        topic = record.topic
        count = self._counts.get(topic)
        if count is None:
            count = self._counts[topic] = self._run(self._producer.topic(topic)).partition_count
        if record.partition is not None:
            number = record.partition
            if not 0 <= number < count:
                raise ConnectError(f"a record goes to partition {number}, but topic {topic} has {count} partitions")
        elif record.key is not None:
            number = partition_for_key(record.key, count)
        else:
            number = self._keyless % count
        partition = TopicPartition(topic, number)
        timestamp = self._wall_ms() if record.timestamp is None else record.timestamp
        writer = self._open.get(partition)
        if writer is not None and writer.size_bytes + _size(record) > self._batch_bytes:
            self._send(partition, writer)
            del self._open[partition]
            writer = None
            if record.key is None and record.partition is None:
                # The next batch of records without a key is for another partition, as other producers do it.
                self._keyless += 1
                self.write(record._replace(timestamp=timestamp))
                return
        if writer is None:
            writer = self._open[partition] = PayloadWriter()
        writer.append(timestamp, record.key, record.value, record.headers)

    def finish(self) -> None:
        """Send what is left, and wait for all acknowledgements."""
        for partition, writer in self._open.items():
            self._send(partition, writer)
        self._open.clear()
        self._run(self._producer.finish())

    def _send(self, partition: TopicPartition, writer: PayloadWriter) -> None:
        payload = writer.payload()
        self.byte_count += len(payload)
        stamps = (writer.base_timestamp, writer.max_timestamp)
        self._run(self._producer.put(partition, payload, writer.record_count, stamps))


def _size(record: EncodedRecord) -> int:
    """Not less than the record takes in a batch."""
    size = _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
    if record.headers:
        size += sum(_RECORD_BYTES + 4 * len(name) + len(value or b"") for name, value in record.headers)
    return size
