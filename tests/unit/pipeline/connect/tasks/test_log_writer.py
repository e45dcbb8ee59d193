"""Records are collected by partition and sent as batches."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.errors import ConnectError
from millbeck.pipeline.connect.tasks.conversion import EncodedRecord
from millbeck.pipeline.connect.tasks.log_writer import LogWriter
from millbeck.records.partitioning import partition_for_key


class _Producer:
    def __init__(self) -> None:
        self.sent: list[tuple[TopicPartition, int, int, tuple[int, int]]] = []
        self.is_finished = False

    async def topic(self, name: str) -> Any:
        return SimpleNamespace(partition_count=4)

    async def put(
        self, partition: TopicPartition, payload: bytes, record_count: int, timestamps: tuple[int, int]
    ) -> None:
        self.sent.append((partition, len(payload), record_count, timestamps))

    async def finish(self) -> None:
        self.is_finished = True


def _writer(producer: _Producer, batch_bytes: int = 1000) -> LogWriter:
    found: Any = producer
    return LogWriter(found, asyncio.run, lambda: 77, first_keyless=1, batch_bytes=batch_bytes)


def _record(value: bytes = b"v", **parts: Any) -> EncodedRecord:
    found: dict[str, Any] = {"partition": None, "timestamp": 5, "key": None, "headers": ()} | parts
    return EncodedRecord(topic="t", value=value, **found)


def test_records_go_where_other_clients_send_them() -> None:
    producer = _Producer()
    writer = _writer(producer)
    writer.write(_record(key=b"k"))
    writer.write(_record(partition=3))
    writer.write(_record())
    writer.finish()
    places = [partition.partition for partition, *_ in producer.sent]
    assert places == [partition_for_key(b"k", 4), 3, 1]
    assert producer.is_finished
    assert writer.topics == ("t",)


def test_a_full_batch_is_sent_and_records_without_a_key_go_on_elsewhere() -> None:
    producer = _Producer()
    writer = _writer(producer)
    for number in range(5):
        writer.write(_record(b"x" * 400, timestamp=number))
    writer.finish()
    assert [(each[0].partition, each[2], each[3]) for each in producer.sent] == [
        (1, 2, (0, 1)),
        (2, 2, (2, 3)),
        (3, 1, (4, 4)),
    ]
    assert all(size <= 1000 for _, size, _, _ in producer.sent)


def test_a_record_larger_than_a_batch_has_one_of_its_own() -> None:
    producer = _Producer()
    writer = _writer(producer)
    for _ in range(9):
        writer.write(_record(b"x" * 2000))
        writer.write(_record(b"x" * 2000, key=b"k"))
    writer.finish()
    assert [count for _, _, count, _ in producer.sent] == [1] * 18


def test_records_with_a_key_stay_in_their_partition() -> None:
    producer = _Producer()
    writer = _writer(producer)
    for _ in range(5):
        writer.write(_record(b"x" * 400, key=b"k", timestamp=None))
    writer.finish()
    assert len({each[0] for each in producer.sent}) == 1
    assert {each[3] for each in producer.sent} == {(77, 77)}


def test_a_partition_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConnectError, match="has 4 partitions"):
        _writer(_Producer()).write(_record(partition=4))
