"""Rows become batches for the right partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.records.strategies import HEADERS, KEYS, VALUES

pa = pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from millbeck.client.blocking import Blocking  # noqa: E402
from millbeck.client.columns.arrow import HEADERS as HEADERS_TYPE  # noqa: E402
from millbeck.client.errors import NoBrokerReachable  # noqa: E402
from millbeck.kernel.errors import InvalidTxnState, MessageTooLarge, UnknownTopicOrPartition  # noqa: E402
from millbeck.kernel.ids import TopicPartition  # noqa: E402
from millbeck.pipeline.errors import (  # noqa: E402
    BrokerUnreachable,
    InvalidOption,
    NotExactlyOnce,
    PipelineError,
    TopicMissing,
)
from millbeck.pipeline.row_writer import RowWriter, rows_of, with_partitions  # noqa: E402
from millbeck.pipeline.sink_options import parse_sink_options  # noqa: E402
from millbeck.records.native.read import read_records  # noqa: E402
from millbeck.records.partitioning import partition_for_key  # noqa: E402
from millbeck.records.record import Record  # noqa: E402


class FakeProducer:
    """Keeps what it is given."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.sent: dict[TopicPartition, list[list[Record]]] = {}
        self.error: Exception | None = None

    async def topic(self, name: str) -> Any:
        if name not in self.counts:
            raise UnknownTopicOrPartition(name)
        return SimpleNamespace(partition_count=self.counts[name])

    async def put(self, partition: TopicPartition, payload: bytes, record_count: int) -> None:
        if self.error is not None:
            raise self.error
        self.sent.setdefault(partition, []).append(
            cast("list[Record]", read_records(payload, 0, record_count, 0, 0, -1))
        )

    async def finish(self) -> dict[TopicPartition, tuple[int, int]]:
        return {partition: (sum(map(len, batches)), -1) for partition, batches in self.sent.items()}


class FakeBlocking:
    environment = SimpleNamespace(randomness=SimpleNamespace(below=lambda bound: 0))

    def __init__(self, producer: FakeProducer) -> None:
        self.producer = producer

    def make(self, factory: object) -> FakeProducer:
        return self.producer

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(coroutine)


def outgoing_to(counts: dict[str, int], **options: str) -> tuple[RowWriter, FakeProducer]:
    producer = FakeProducer(counts)
    parsed = parse_sink_options({"kafka.bootstrap.servers": "h:1", **options})
    return RowWriter(parsed, cast("Blocking", FakeBlocking(producer))), producer


def batch_of(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns)


ROWS = st.lists(st.tuples(KEYS, VALUES, HEADERS, st.none() | st.integers(0, 2)), min_size=1, max_size=12)


@given(st.lists(ROWS, min_size=1, max_size=3), st.sampled_from(["60", "100000"]), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_every_row_goes_where_it_belongs_in_order(batches: list[list[Any]], size: str, skip: int) -> None:
    outgoing, producer = outgoing_to({"a": 3}, topic="a", **{"kafka.batch.size": size})
    expected: dict[int, list[Any]] = {}
    for turn, rows in enumerate(batches):
        keys, values, headers, partitions = zip(*rows, strict=True)
        lists = [[{"key": name, "value": value} for name, value in each] or None for each in headers]
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array(keys, pa.binary()),
                pa.array(values, pa.binary()),
                pa.array(lists, HEADERS_TYPE),
                pa.array(partitions, pa.int32()),
            ],
            ["key", "value", "headers", "partition"],
        )
        for key, value, each, partition in rows[skip:]:
            hashed = turn % 3 if key is None else partition_for_key(key, 3)
            expected.setdefault(hashed if partition is None else partition, []).append((key, value, each))
        outgoing.write(batch.slice(skip))
        if len(rows) <= skip:
            outgoing._keyless_turn = turn + 1
    written = outgoing.finish()
    found = {
        partition.partition: [(record.key, record.value, record.headers) for each in sent for record in each]
        for partition, sent in producer.sent.items()
    }
    assert found == expected
    assert {partition.partition: count for partition, (count, _) in written.items()} == {
        number: len(rows) for number, rows in expected.items()
    }


def test_strings_are_written_as_their_bytes() -> None:
    outgoing, producer = outgoing_to({"a": 1}, topic="a")
    outgoing.write(batch_of(key=["ä"], value=["ö"]))
    outgoing.finish()
    ((record,),) = producer.sent[TopicPartition("a", 0)]
    assert (record.key, record.value) == ("ä".encode(), "ö".encode())


def test_rows_choose_their_topic() -> None:
    outgoing, producer = outgoing_to({"a": 1, "b": 1})
    outgoing.write(batch_of(value=["1", "2", "3"], topic=["b", "a", "b"]))
    outgoing.finish()
    found = {name.topic: [record.value for each in sent for record in each] for name, sent in producer.sent.items()}
    assert found == {"a": [b"2"], "b": [b"1", b"3"]}


def test_rows_without_a_key_fill_one_partition_after_another() -> None:
    outgoing, producer = outgoing_to({"a": 2}, topic="a")
    for _ in range(3):
        outgoing.write(batch_of(value=["x", "y"]))
    outgoing.finish()
    assert {name.partition: sum(map(len, sent)) for name, sent in producer.sent.items()} == {0: 4, 1: 2}


def test_full_batches_are_sent_on_the_way() -> None:
    outgoing, producer = outgoing_to({"a": 1}, topic="a", **{"kafka.batch.size": "100"})
    outgoing.write(batch_of(value=["x" * 40] * 7))
    assert [len(each) for each in producer.sent[TopicPartition("a", 0)]] == [2, 2, 2]
    outgoing.finish()
    assert [len(each) for each in producer.sent[TopicPartition("a", 0)]] == [2, 2, 2, 1]


def test_no_rows_are_nothing() -> None:
    outgoing, producer = outgoing_to({}, topic="a")
    outgoing.write(batch_of(value=pa.array([], pa.string())))
    assert outgoing.finish() == {}
    assert producer.sent == {}


REFUSED: dict[str, tuple[dict[str, Any], dict[str, str], type[Exception], str]] = {
    "no topic": ({"value": ["x"]}, {}, InvalidOption, "rows need a topic"),
    "a null topic": ({"value": ["x"], "topic": pa.array([None], pa.string())}, {}, PipelineError, "row has no topic"),
    "a missing topic": ({"value": ["x"]}, {"topic": "b"}, TopicMissing, "there is no topic b at h:1"),
    "a wrong partition": ({"value": ["x"], "partition": [5]}, {"topic": "a"}, PipelineError, "partition 5.*has 2"),
    "below zero": ({"value": ["x"], "partition": [-1]}, {"topic": "a"}, PipelineError, "partition -1"),
}


@pytest.mark.parametrize(("columns", "options", "kind", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_rows_that_go_nowhere(
    columns: dict[str, Any], options: dict[str, str], kind: type[Exception], words: str
) -> None:
    outgoing, _ = outgoing_to({"a": 2}, **options)
    with pytest.raises(kind, match=words):
        outgoing.write(batch_of(**columns))


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (NoBrokerReachable("nobody"), BrokerUnreachable, "no broker answers at h:1"),
        (MessageTooLarge("too large"), PipelineError, "a-0 could not be written: too large"),
        (InvalidTxnState("somebody else"), NotExactlyOnce, "somebody else: with delivery=exactly_once all rows"),
    ],
)
def test_errors_are_for_the_user(error: Exception, kind: type[Exception], words: str) -> None:
    outgoing, producer = outgoing_to({"a": 1}, topic="a")
    producer.error = error
    outgoing.write(batch_of(value=["x"]))
    with pytest.raises(kind, match=words):
        outgoing.finish()


def test_columns_of_other_types_are_refused() -> None:
    with pytest.raises(InvalidOption, match='need a column "value"'):
        rows_of(batch_of(key=["x"]))
    with pytest.raises(PipelineError, match='"value" must be binary or string, not int64'):
        rows_of(batch_of(value=[5]))
    with pytest.raises(PipelineError, match="array of key and value"):
        rows_of(batch_of(value=["x"], headers=["y"]))
    unnamed = pa.array([[{"key": None, "value": b"1"}]], HEADERS_TYPE)
    with pytest.raises(PipelineError, match="header has no name"):
        rows_of(batch_of(value=["x"], headers=unnamed))
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array([{"key": "a", "value": b"1"}] * 2, HEADERS_TYPE.value_type)
    )
    masked = pa.ListArray.from_buffers(
        hidden.type, 2, [pa.py_buffer(b"\x01"), hidden.buffers()[1]], children=[hidden.values]
    )
    with pytest.raises(PipelineError, match="entries in null rows"):
        rows_of(batch_of(value=["x", "y"], headers=masked))


def test_a_wrong_setting_is_named() -> None:
    parsed = parse_sink_options({"kafka.bootstrap.servers": "h:1", "kafka.acks": "some"})
    with pytest.raises(InvalidOption, match=r"acks.*prefix kafka"):
        RowWriter(parsed)


def test_each_topic_of_a_batch_has_its_own_partition_count() -> None:
    keys = [f"k{number}".encode() for number in range(40)]
    topics = ["wide" if number % 3 else "narrow" for number in range(40)]
    batch = pa.RecordBatch.from_pydict({"topic": topics, "key": pa.array(keys, pa.binary())})
    placed = with_partitions(batch, {"wide": 7, "narrow": 2}, 0).column("partition").to_pylist()
    counts = {"wide": 7, "narrow": 2}
    assert placed == [partition_for_key(key, counts[topic]) for key, topic in zip(keys, topics, strict=True)]
    keyless = pa.RecordBatch.from_pydict({"topic": topics})
    turned = with_partitions(keyless, counts, 1).column("partition").to_pylist()
    assert turned == [(number + 1) % counts[topic] for number, topic in enumerate(topics)]
    assert with_partitions(batch.slice(0, 0), counts, 0).num_rows == 0
