"""`Producer.send_columns` and `Consumer.poll_columns`: the same records as one by one, with the same guarantees."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client import Consumer, Producer, Record, TopicPartition
from millbeck.client.serialization import StrSerde
from millbeck.kernel.errors import (
    CorruptMessage,
    InvalidRequest,
    InvalidTxnState,
    MessageTooLarge,
    NotEnoughReplicas,
)
from millbeck.records import batch
from millbeck.wire.messages.produce import ProduceRequest
from tests.unit.client.fake_cluster import FakeCluster, produce_error, simulate

pa = pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from millbeck.client.columns.rows import MissingColumn, UnsuitableColumns  # noqa: E402

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


def producer_of(cluster: FakeCluster, **settings: Any) -> Producer[Any, Any]:
    return Producer({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment, **settings)


def consumer_of(cluster: FakeCluster, **settings: Any) -> Consumer[Any, Any]:
    texts = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest"}
    return Consumer(texts, environment=cluster.environment, **settings)


def table_of(count: int, **columns: Any) -> Any:
    return pa.table({"value": [b"%d" % number for number in range(count)], **columns})


def fill(cluster: FakeCluster, *sizes: int) -> None:
    (log,) = cluster.add_topic("a")
    start = 0
    for size in sizes:
        log.append(batch.build([Record(-1, 7, b"k", b"%d" % number) for number in range(start, start + size)]))
        start += size


def test_rows_are_stored_as_records_sent_one_by_one_are() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        logs = cluster.add_topic("a", 2)
        headers = pa.array([[{"key": "h", "value": b"x"}], [], None], type=HEADERS)
        table = pa.table({"key": ["k", None, "l"], "value": [b"1", None, b"3"], "headers": headers})
        async with producer_of(cluster, compression_type="gzip") as producer:
            first = producer.send_nowait("a", b"before", partition=0)
            counts = await producer.send_columns("a", table)
            await producer.send_columns("a", pa.table({"value": ["p"], "partition": [1]}))
            await producer.send_columns("a", table_of(0))
            assert first.done()
            assert sum(counts.values()) == 3
            one_by_one = (await producer.send("a", b"", key=b"k")).partition, (await producer.send("a", b"l", key=b"l"))
        records = [record for log in logs for one in log.batches for record in batch.records_of(one)]
        assert (b"k", b"1", (("h", b"x"),)) in [(record.key, record.value, record.headers) for record in records]
        assert (None, None, ()) in [(record.key, record.value, record.headers) for record in records]
        assert logs[0].values[0] == b"before"
        assert b"p" in logs[1].values
        assert b"1" in logs[one_by_one[0]].values
        assert b"3" in logs[one_by_one[1].partition].values
        assert all(record.timestamp > 1_000_000_000_000 for record in records)

    simulate(scenario)


def test_many_rows_fill_many_batches_in_order_within_the_memory_bound() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with producer_of(cluster, batch_size=2000, buffer_memory=20_000) as producer:
            sending = asyncio.ensure_future(producer.send_columns("a", table_of(20_000)))
            while not sending.done():
                assert producer.buffered_bytes <= 20_000
                await asyncio.sleep(0.0001)
            assert await sending == {A0: 20_000}
            assert producer.buffered_bytes == 0
        assert log.values == [b"%d" % number for number in range(20_000)]
        assert len(log.batches) > 50

    simulate(scenario)


def test_a_retry_stores_nothing_twice_and_a_batch_that_is_too_large_is_split() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        async with producer_of(cluster) as producer:
            cluster.next(ProduceRequest, produce_error(NotEnoughReplicas.code), produce_error(MessageTooLarge.code))
            assert await producer.send_columns("a", table_of(100)) == {A0: 100}
        assert log.values == [b"%d" % number for number in range(100)]
        assert len(log.batches) == 2

    simulate(scenario)


def test_what_cannot_be_stored_is_refused() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with producer_of(cluster) as producer:
            with pytest.raises(MissingColumn, match="value"):
                await producer.send_columns("a", pa.table({"key": ["k"]}))
            with pytest.raises(UnsuitableColumns, match="binary or string"):
                await producer.send_columns("a", pa.table({"value": [5]}))
            with pytest.raises(UnsuitableColumns, match="partition 2"):
                await producer.send_columns("a", pa.table({"value": ["v"], "partition": [2]}))
            cluster.on(ProduceRequest, produce_error(MessageTooLarge.code))
            with pytest.raises(MessageTooLarge):
                await producer.send_columns("a", table_of(3))
            assert producer.buffered_bytes == 0
        async with producer_of(cluster, value_serializer=StrSerde()) as producer:
            with pytest.raises(InvalidRequest, match="serializers"):
                await producer.send_columns("a", table_of(1))
        async with producer_of(cluster, partitioner_class="roundrobin") as producer:
            with pytest.raises(InvalidRequest, match="default partitioner"):
                await producer.send_columns("a", table_of(1))
        async with producer_of(cluster, transactional_id="t") as producer:
            with pytest.raises(InvalidTxnState):
                await producer.send_columns("a", table_of(1))

    simulate(scenario)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_columns_are_those_of_the_records_and_positions_advance(codec: str) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with producer_of(cluster, compression_type=codec) as producer:
            for number in range(50):
                await producer.send("a", b"%d" % number, key=b"k", partition=number % 2, headers=[("n", b"1")])
        settings: dict[str, Any] = {"group_id": "g", "enable_auto_commit": False}
        async with consumer_of(cluster, **settings) as consumer:
            consumer.assign([A0, A1])
            rows: list[dict[str, Any]] = []
            while len(rows) < 50:
                for partition, batches in (await consumer.poll_columns(with_headers=True)).items():
                    for each in batches:
                        assert set(each.column("partition").to_pylist()) == {partition.partition}
                        rows += each.to_pylist()
            assert sorted(int(row["value"]) for row in rows) == list(range(50))
            assert [row["offset"] for row in rows if row["partition"] == 0] == list(range(25))
            assert rows[0]["key"] == b"k"
            assert rows[0]["topic"] == "a"
            assert rows[0]["headers"] == [{"key": "n", "value": b"1"}]
            assert await consumer.poll_columns(timeout_s=0.1) == {}
            assert await consumer.position(A0) == 25
            await consumer.commit()
            assert cluster.committed["g", "a", 1][0] == 25

    simulate(scenario)


def test_records_and_columns_may_be_polled_in_turn() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        fill(cluster, 10, 10)
        async with consumer_of(cluster) as consumer:
            consumer.assign([A0])
            polled: list[Record[Any, Any]] = []
            while not polled:
                polled = (await consumer.poll(max_records=3)).get(A0, [])
            seen = [record.offset for record in polled]
            while len(seen) < 20:
                for each in (await consumer.poll_columns()).get(A0, []):
                    seen += each.column("offset").to_pylist()
            assert seen == list(range(20))

    simulate(scenario)


def test_records_before_a_bad_batch_are_returned_and_then_its_error_each_time() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        fill(cluster, 5, 5)
        log = cluster.topics["a"][1][0]
        log.batches[1] = log.batches[1][:-1] + bytes([log.batches[1][-1] ^ 1])
        async with consumer_of(cluster) as consumer:
            consumer.assign([A0])
            (good,) = (await consumer.poll_columns(timeout_s=5))[A0]
            assert good.column("offset").to_pylist() == [0, 1, 2, 3, 4]
            for _ in range(2):
                with pytest.raises(CorruptMessage, match="a-0 at offset 5"):
                    await consumer.poll_columns(timeout_s=5)
            consumer.seek(A0, 10)
            assert await consumer.poll_columns(timeout_s=0.1) == {}
        async with consumer_of(cluster, value_deserializer=StrSerde()) as texts:
            texts.assign([A0])
            with pytest.raises(InvalidRequest, match="deserializers"):
                await texts.poll_columns()

    simulate(scenario)
