"""Whole batches: each stored once and in order, whatever happens on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.errors import DeliveryTimeout
from millbeck.client.producer.bulk import BatchProducer
from millbeck.client.producer.shared_transaction import TransactionHandle
from millbeck.kernel.errors import InvalidTxnState, MessageTooLarge, NotLeaderOrFollower, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition
from millbeck.records.batch import read_header
from millbeck.records.native.record import Record
from millbeck.records.native.write import encode_records
from millbeck.wire.messages.produce import ProduceRequest
from millbeck.wire.messages.transactions import InitProducerIdRequest
from tests.unit.client.fake_cluster import CLOSE, FakeBroker, FakeCluster, produce_error, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def payload(*values: bytes) -> bytes:
    return encode_records([Record(-1, 0, None, value) for value in values], 0, 0)[0]


def open_producer(cluster: FakeCluster, ticket: TransactionHandle | None = None, **settings: Any) -> BatchProducer:
    texts = {name.replace("_", "."): value for name, value in settings.items()}
    return BatchProducer(cluster.environment, {"bootstrap.servers": cluster.bootstrap, **texts}, ticket=ticket)


@pytest.mark.parametrize("trouble", ["none", "lost answers", "wrong leader"])
def test_batches_are_stored_once_and_in_order(trouble: str) -> None:
    async def scenario(cluster: FakeCluster) -> Any:
        logs = cluster.add_topic("a", 2)
        if trouble == "lost answers":

            def store_and_drop(call: Any) -> Any:
                cluster.produce(call)
                return CLOSE

            cluster.next(ProduceRequest, store_and_drop, store_and_drop)
        elif trouble == "wrong leader":
            cluster.next(ProduceRequest, produce_error(NotLeaderOrFollower.code))
        async with open_producer(cluster, compression_type="lz4") as producer:
            for number in range(4):
                await producer.put(A0, payload(b"%d" % number, b"x"), 2)
                await producer.put(A1, payload(b"%d" % number), 1)
            written = await producer.finish()
        return [log.values for log in logs], written

    logs, written = simulate(scenario)
    assert logs == [[b"0", b"x", b"1", b"x", b"2", b"x", b"3", b"x"], [b"0", b"1", b"2", b"3"]]
    assert {partition: count for partition, (count, _) in written.items()} == {A0: 8, A1: 4}
    if trouble != "lost answers":
        assert [end for _, end in written.values()] == [8, 4]


def test_a_ticket_is_used() -> None:
    async def scenario(cluster: FakeCluster) -> Any:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, TransactionHandle("t", 70, 3)) as producer:
            await producer.put(A0, payload(b"1"), 1)
            await producer.put(A0, payload(b"2"), 1)
            await producer.finish()
        assert cluster.asked(InitProducerIdRequest) == []
        assert {call.message.transactional_id for call in cluster.asked(ProduceRequest)} == {"t"}
        return [read_header(batch) for batch in log.batches]

    headers = simulate(scenario)
    assert [(header.producer_id, header.producer_epoch, header.base_sequence) for header in headers] == [
        (70, 3, 0),
        (70, 3, 1),
    ]
    assert all(header.is_transactional for header in headers)


def test_two_writers_with_one_ticket_are_noticed() -> None:
    async def scenario(cluster: FakeCluster) -> list[bytes | None]:
        (log,) = cluster.add_topic("a")
        ticket = TransactionHandle("t", 70, 3)
        async with open_producer(cluster, ticket) as first, open_producer(cluster, ticket) as second:
            await first.put(A0, payload(b"1"), 1)
            await first.finish()
            await second.put(A0, payload(b"2"), 1)
            with pytest.raises(InvalidTxnState, match="another writer produces to a-0"):
                await second.finish()
        async with open_producer(cluster, ticket) as third:
            await third.put(A0, payload(b"3", b"4"), 2)
            with pytest.raises(InvalidTxnState, match="another writer produces to a-0"):
                await third.finish()
        return log.values

    assert simulate(scenario) == [b"1"]


def test_without_idempotence_batches_have_no_sequence() -> None:
    async def scenario(cluster: FakeCluster) -> Any:
        (log,) = cluster.add_topic("a")
        async with open_producer(cluster, acks="1") as producer:
            await producer.put(A0, payload(b"1"), 1)
            await producer.finish()
        return read_header(log.batches[0])

    header = simulate(scenario)
    assert (header.producer_id, header.base_sequence, header.is_transactional) == (-1, -1, False)


def test_errors_come_with_the_next_call() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(ProduceRequest, produce_error(MessageTooLarge.code))
        async with open_producer(cluster) as producer:
            await producer.put(A0, payload(b"1"), 1)
            with pytest.raises(MessageTooLarge, match="the batch is too large for a-0"):
                await producer.put(A0, payload(b"2"), 1)

    simulate(scenario)


def test_what_is_never_acknowledged_is_told() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(ProduceRequest, produce_error(NotLeaderOrFollower.code))
        async with open_producer(cluster, delivery_timeout_ms=40_000) as producer:
            await producer.put(A0, payload(b"1"), 1)
            with pytest.raises(DeliveryTimeout, match="1 records for a-0 were not acknowledged"):
                await producer.finish()

    simulate(scenario)


@pytest.mark.parametrize(("max_block_ms", "waits_s"), [(2000, 2), (60_000, 5)])
def test_a_topic_that_is_missing_is_told_in_seconds(max_block_ms: int, waits_s: float) -> None:
    async def scenario(cluster: FakeCluster) -> float:
        clock = cluster.environment.clock
        async with open_producer(cluster, max_block_ms=max_block_ms) as producer:
            began = clock.monotonic()
            with pytest.raises(UnknownTopicOrPartition, match="there is no topic b"):
                await producer.topic("b")
            return clock.monotonic() - began

    assert waits_s - 1.5 < simulate(scenario) <= waits_s


def test_brokers_that_are_away_are_waited_for_longer() -> None:
    async def scenario(cluster: FakeCluster) -> tuple[int, float]:
        cluster.add_topic("a", 2)
        (broker,) = cluster.brokers.values()
        clock = cluster.environment.clock
        broker.stop()
        async with open_producer(cluster) as producer:
            began = clock.monotonic()
            producer.cluster.spawn(_start_later(broker))
            found = await producer.topic("a")
            return found.partition_count, clock.monotonic() - began

    count, waited_s = simulate(scenario)
    assert count == 2
    assert 20 <= waited_s < 30


async def _start_later(broker: FakeBroker) -> None:
    await asyncio.sleep(20)
    await broker.start()
