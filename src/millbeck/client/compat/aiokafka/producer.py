"""`AIOKafkaProducer` on millbeck's producer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from millbeck.client.committed_offset import CommittedOffset
from millbeck.client.compat.aiokafka.errors import (
    IllegalOperation,
    KafkaTimeoutError,
    ProducerClosed,
    translated,
    translating,
)
from millbeck.client.compat.aiokafka.settings import COMMON, arguments, common_settings, missing
from millbeck.client.compat.aiokafka.structs import OffsetAndMetadata, RecordMetadata
from millbeck.client.metadata import TopicView
from millbeck.client.producer import Producer
from millbeck.client.producer import RecordMetadata as StoredRecord
from millbeck.client.producer.accumulator import record_size_max
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Header

Delivery = asyncio.Future[RecordMetadata]
ChoosePartition = Callable[[bytes | None, list[int], list[int]], int]

_missing = missing


class DefaultPartitioner:
    """aiokafka's default partitioner: by murmur2 of the key, as millbeck's own."""


_DEFAULT_PARTITIONER: Final = DefaultPartitioner()

_DEFAULTS: Final[dict[str, Any]] = {
    **COMMON,
    "acks": missing,
    "key_serializer": None,
    "value_serializer": None,
    "compression_type": None,
    "max_batch_size": 16_384,
    "partitioner": _DEFAULT_PARTITIONER,
    "max_request_size": 1_048_576,
    "linger_ms": 0,
    "enable_idempotence": False,
    "transactional_id": None,
    "transaction_timeout_ms": 60_000,
}


class _Chosen:
    """A partitioner that is a function of the key and the partitions."""

    def __init__(self, choose: ChoosePartition) -> None:
        self._choose = choose

    def partition(self, topic: TopicView, key: bytes | None, size_bytes: int) -> int:
        available = [number for number, view in topic.partitions.items() if view.leader_id >= 0]
        return self._choose(key, list(topic.partitions), available)


class _Entry(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: tuple[Header, ...]


class BatchBuilder:
    """Records that are sent one after the other to one partition (`AIOKafkaProducer.send_batch`)."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._size = 0
        self._is_closed = False
        self.entries: list[_Entry] = []

    def append(
        self,
        *,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None,
        headers: Iterable[Header] = (),
    ) -> object | None:
        """Add a record; returns None, and adds nothing, if the batch is full or closed."""
        entry = _Entry(key, value, timestamp, tuple(headers))
        size = record_size_max(key, value, entry.headers)
        if self._is_closed or (self.entries and self._size + size > self._size_max):
            return None
        self._size += size
        self.entries.append(entry)
        return entry

    def close(self) -> None:
        self._is_closed = True

    def record_count(self) -> int:
        return len(self.entries)

    def size(self) -> int:
        return self._size


class AIOKafkaProducer:
    """A producer with aiokafka's arguments and methods."""

    def __init__(self, **options: Any) -> None:
        self._options = found = arguments("AIOKafkaProducer", _DEFAULTS, options)
        is_exact = found["enable_idempotence"] or found["transactional_id"] is not None
        acks = ("all" if is_exact else 1) if found["acks"] is missing else found["acks"]
        settings = common_settings(found) | {
            "acks": "all" if acks == -1 else acks,
            "compression.type": found["compression_type"] or "none",
            "batch.size": found["max_batch_size"],
            "max.request.size": found["max_request_size"],
            "linger.ms": found["linger_ms"],
            "enable.idempotence": is_exact,
            "transactional.id": found["transactional_id"],
            "transaction.timeout.ms": found["transaction_timeout_ms"],
            "max.block.ms": found["request_timeout_ms"],
            "delivery.timeout.ms": found["request_timeout_ms"] + found["linger_ms"],
        }
        if not is_exact:
            # aiokafka keeps the order of a partition without idempotence too: it has one request in flight for it.
            settings["max.in.flight.requests.per.connection"] = 1
        chooser = found["partitioner"]
        with translating(ProducerClosed):
            self._producer: Producer[bytes, bytes] = Producer(
                settings, partitioner=None if isinstance(chooser, DefaultPartitioner) else _Chosen(chooser)
            )
        self._closed = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Connect to the cluster; raises KafkaConnectionError if no broker can be reached."""
        timeout_s = self._options["request_timeout_ms"] / 1000
        with translating(ProducerClosed):
            try:
                await self._producer.cluster.refresh(Deadline(timeout_s))
                if self._options["transactional_id"] is not None:
                    await self._producer.init_transactions()
            except BaseException:
                await self._producer.close(0)
                raise

    async def stop(self) -> None:
        """Send all buffered records, and close."""
        self._closed = True
        await self._producer.close()

    async def flush(self) -> None:
        with translating(ProducerClosed):
            await self._producer.flush()

    async def partitions_for(self, topic: str) -> set[int]:
        with translating(ProducerClosed):
            view = await self._producer.cluster.topic(topic, timeout_s=self._options["request_timeout_ms"] / 1000)
        return set(view.partitions)

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] | None = None,
    ) -> Delivery:
        """Wait for metadata and room; returns the future of the acknowledgement."""
        serialize_key, serialize_value = self._options["key_serializer"], self._options["value_serializer"]
        encoded_key = key if serialize_key is None else serialize_key(key)
        encoded_value = value if serialize_value is None else serialize_value(value)
        return await self._send(
            topic, _Entry(encoded_key, encoded_value, timestamp_ms, tuple(headers or ())), partition
        )

    async def _send(self, topic: str, entry: _Entry, partition: int | None) -> Delivery:
        key, value = _as_bytes(entry.key), _as_bytes(entry.value)
        with translating(ProducerClosed):
            try:
                stored = await self._producer.enqueue(
                    topic, value, key, partition=partition, timestamp=entry.timestamp, headers=entry.headers
                )
            except UnknownTopicOrPartition as error:
                if partition is not None and "partition" in str(error):
                    raise AssertionError("Unrecognized partition") from error
                raise
        return _delivery_of(stored, entry.timestamp)

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] | None = None,
    ) -> RecordMetadata:
        return await (await self.send(topic, value, key, partition, timestamp_ms, headers))

    def create_batch(self) -> BatchBuilder:
        return BatchBuilder(self._options["max_batch_size"])

    async def send_batch(self, batch: BatchBuilder, topic: str, *, partition: int | None) -> Delivery:
        """Send the records of a batch in order; the future is that of the first, and fails if one of them fails."""
        batch.close()
        await self.partitions_for(topic)
        sent: list[Delivery] = []
        for entry in batch.entries:
            try:
                # All in one turn of the event loop, so that they are stored as one batch.
                with translating(ProducerClosed):
                    stored = self._producer.send_nowait(
                        topic,
                        _as_bytes(entry.value),
                        _as_bytes(entry.key),
                        partition=partition,
                        timestamp=entry.timestamp,
                        headers=entry.headers,
                    )
                sent.append(_delivery_of(stored, entry.timestamp))
            except KafkaTimeoutError:
                sent.append(await self._send(topic, entry, partition))

        async def whole() -> RecordMetadata:
            return (await asyncio.gather(*sent))[0]

        return asyncio.ensure_future(whole())

    # transactions

    async def begin_transaction(self) -> None:
        self._check_transactional()
        with translating(ProducerClosed):
            self._producer.begin_transaction()

    async def commit_transaction(self) -> None:
        self._check_transactional()
        with translating(ProducerClosed):
            await self._producer.commit_transaction()

    async def abort_transaction(self) -> None:
        self._check_transactional()
        with translating(ProducerClosed):
            await self._producer.abort_transaction()

    def transaction(self) -> TransactionContext:
        return TransactionContext(self)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata], group_id: str
    ) -> None:
        self._check_transactional()
        with translating(ProducerClosed, commits=True):
            await self._producer.send_offsets(group_id, committed_offsets(offsets))

    def _check_transactional(self) -> None:
        if self._options["transactional_id"] is None:
            raise IllegalOperation("You need to configure transaction_id to use transactions")


class TransactionContext:
    """``async with producer.transaction():`` commits at its end and aborts on an exception."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer

    async def __aenter__(self) -> Self:
        await self._producer.begin_transaction()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            await self._producer.commit_transaction()
        else:
            await self._producer.abort_transaction()


def committed_offsets(
    offsets: Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata],
) -> dict[TopicPartition, CommittedOffset]:
    """Offsets as aiokafka takes them: a number, or a number and a text."""
    return {
        TopicPartition(*partition): (
            CommittedOffset(offset) if isinstance(offset, int) else CommittedOffset(offset[0], metadata=offset[1])
        )
        for partition, offset in offsets.items()
    }


def _as_bytes(value: Any) -> bytes | None:
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _delivery_of(stored: asyncio.Future[StoredRecord], timestamp: int | None) -> Delivery:
    """The future with aiokafka's metadata."""
    delivery: Delivery = asyncio.get_running_loop().create_future()
    stored.add_done_callback(lambda done: _deliver(done, delivery, timestamp))
    return delivery


def _deliver(done: asyncio.Future[StoredRecord], delivery: Delivery, timestamp: int | None) -> None:
    error = None if done.cancelled() else done.exception()
    if delivery.done():
        return
    if done.cancelled():
        delivery.cancel()
    elif error is not None:
        delivery.set_exception(translated(error, ProducerClosed) if isinstance(error, ApiError) else error)
    else:
        stored = done.result()
        is_append_time = timestamp is not None and stored.timestamp != timestamp
        place = TopicPartition(stored.topic, stored.partition)
        delivery.set_result(RecordMetadata(*place, place, stored.offset, stored.timestamp, int(is_append_time), None))
