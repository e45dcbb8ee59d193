"""Records without a key avoid long queues and brokers that take nothing; with round robin all partitions take turns."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from millbeck.client.config import Value
from millbeck.client.metadata import PartitionMetadata, TopicView
from millbeck.client.producer import Producer
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.partitioner import DefaultPartitioner, RoundRobinPartitioner
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.produce import ProduceRequest
from tests.unit.client.fake_cluster import SILENCE, USUAL, Call, FakeCluster, later, simulate
from tests.unit.client.producer.test_partitioner import Dice, topic


class Load:
    """Queue lengths by partition, and brokers that take nothing."""

    def __init__(self, *lengths: int, stuck: tuple[int, ...] = ()) -> None:
        self.lengths = lengths
        self.stuck = stuck

    def queue_length(self, partition: TopicPartition) -> int:
        return self.lengths[partition.partition]

    def is_stuck(self, node_id: int) -> bool:
        return node_id in self.stuck


def shares(load: Load, view: TopicView, count: int = 6000) -> Counter[int]:
    """How often each partition is chosen if every record fills a batch."""
    partitioner = DefaultPartitioner(Dice(), batch_size=1, load=load)
    return Counter(partitioner.partition(view, None, 1) for _ in range(count))


def test_the_longer_its_queue_the_less_often_a_partition_is_chosen() -> None:
    found = shares(Load(0, 3, 1), topic(1, 1, 1))
    # The longest queue plus one, less its own: weights 4, 1 and 3 of 8.
    assert found[0] == pytest.approx(3000, abs=150)
    assert found[1] == pytest.approx(750, abs=100)
    assert found[2] == pytest.approx(2250, abs=150)


def test_with_equal_queues_the_next_partition_is_another_one() -> None:
    partitioner = DefaultPartitioner(Dice(), batch_size=1, load=Load(2, 2, 2))
    chosen = [partitioner.partition(topic(1, 1, 1), None, 1) for _ in range(100)]
    assert all(before != after for before, after in pairwise(chosen))
    assert set(chosen) == {0, 1, 2}


def test_partitions_of_a_stuck_broker_are_left_out_while_there_are_others() -> None:
    assert set(shares(Load(0, 5, 0), topic(1, 2, 1), 50)) == {0, 1, 2}
    assert set(shares(Load(0, 5, 0, stuck=(1,)), topic(1, 2, 1), 50)) == {1}
    assert set(shares(Load(0, 0, 0, stuck=(1, 2)), topic(1, 2, 1), 50)) == {0, 1, 2}


def test_a_stuck_broker_and_a_missing_leader_leave_the_rest() -> None:
    assert set(shares(Load(0, 0, 0, 0, stuck=(1,)), topic(1, -1, 2, 2), 50)) == {2, 3}


def test_without_the_adaptive_setting_load_is_not_asked() -> None:
    partitioner = ProducerConfig.parse(
        {"bootstrap.servers": "a:1", "batch.size": 1, "partitioner.adaptive.partitioning.enable": False}
    ).partitioner(Dice(), Load(0, 1000, stuck=(1,)))
    counts = Counter(partitioner.partition(topic(1, 2), None, 1) for _ in range(100))
    assert counts == {0: 50, 1: 50}


def test_round_robin_takes_partitions_with_a_leader_in_turn_whatever_the_key() -> None:
    partitioner = RoundRobinPartitioner()
    chosen = [partitioner.partition(topic(1, -1, 1, 1), key, 10) for key in (b"same", None) * 3]
    assert chosen == [0, 2, 3, 0, 2, 3]


def test_round_robin_counts_each_topic_by_itself_and_takes_any_partition_if_none_has_a_leader() -> None:
    partitioner = RoundRobinPartitioner()
    other = topic(1, 1)._replace(name="other")
    chosen = [partitioner.partition(view, None, 10) for view in (topic(1, 1), other, topic(1, 1), other)]
    assert chosen == [0, 0, 1, 1]
    assert [RoundRobinPartitioner().partition(topic(-1, -1), None, 1) for _ in range(2)] == [0, 0]


def test_round_robin_goes_on_when_partitions_come_and_go() -> None:
    partitioner = RoundRobinPartitioner()
    assert [partitioner.partition(topic(1, 1, 1), None, 1) for _ in range(3)] == [0, 1, 2]
    lone = TopicView("t", bytes(16), False, {5: PartitionMetadata(5, 1)})
    assert partitioner.partition(lone, None, 1) == 5


@pytest.mark.parametrize("name", ["roundrobin", "org.apache.kafka.clients.producer.RoundRobinPartitioner"])
def test_a_producer_spreads_records_round_robin(name: str) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        logs = cluster.add_topic("a", 3)
        settings = {"bootstrap.servers": cluster.bootstrap, "partitioner.class": name}
        async with Producer(settings, environment=cluster.environment) as producer:
            for index in range(6):
                await producer.enqueue("a", b"%d" % index, key=b"same")
            await producer.flush()
        assert [log.values for log in logs] == [[b"0", b"3"], [b"1", b"4"], [b"2", b"5"]]

    simulate(scenario)


async def produce(producer: Producer, seconds: float) -> Counter[int]:
    """One record of a batch's size every 100 ms: how many go to each partition."""
    futures = []
    for _ in range(round(seconds * 10)):
        futures.append(await producer.enqueue("a", bytes(1000)))
        futures[-1].add_done_callback(asyncio.Future.exception)
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    return Counter(future.result().partition for future in futures if future.done() and not future.exception())


def open_producer(cluster: FakeCluster, timeout_ms: int, **more: int) -> Producer:
    settings: dict[str, Value] = {
        "bootstrap.servers": cluster.bootstrap,
        "batch.size": 1000,
        "linger.ms": 0,
        "partitioner.availability.timeout.ms": timeout_ms,
    }
    settings.update((name.replace("_", "."), value) for name, value in more.items())
    return Producer(settings, environment=cluster.environment)


def waiting_for(producer: Producer, partition: int) -> int:
    queue = producer._accumulator.queues.get(TopicPartition("a", partition))
    return 0 if queue is None else len(list(queue.batches()))


@pytest.mark.parametrize("partition_count", [2, 6])
@pytest.mark.parametrize("trouble", ["no answer", "away"])
def test_a_broker_that_takes_nothing_gets_no_more_records_until_it_does(partition_count: int, trouble: str) -> None:
    """With two partitions all its requests in flight are of one partition, which may not send any more either."""

    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", partition_count)
        of_second = [number for number in range(partition_count) if number % 2]
        is_well = asyncio.Event()
        is_well.set()

        def answer(call: Call) -> object:
            async def wait() -> object:
                await is_well.wait()
                return cluster.usual(call)

            return USUAL if is_well.is_set() or call.node_id == 1 else wait()

        cluster.on(ProduceRequest, answer)
        async with open_producer(cluster, 2000) as producer:
            counts = await produce(producer, 5)
            assert all(counts[number] for number in range(partition_count))
            is_well.clear()
            if trouble == "away":
                cluster.brokers[2].stop()
            await produce(producer, 8)
            queued = sum(waiting_for(producer, number) for number in of_second)
            assert queued, "it got some before it was known to take nothing"
            await produce(producer, 10)
            assert sum(waiting_for(producer, number) for number in of_second) == queued
            is_well.set()
            if trouble == "away":
                await cluster.brokers[2].start()
            await asyncio.sleep(5)
            counts = await produce(producer, 20)
            assert all(counts[number] for number in of_second)

    simulate(scenario, brokers=2)


def test_a_broker_that_is_behind_and_still_takes_some_is_not_left_out() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        cluster.on(ProduceRequest, lambda call: later(0.9)(call) if call.node_id == 2 else USUAL)
        async with open_producer(cluster, 2000, max_in_flight_requests_per_connection=1) as producer:
            await produce(producer, 10)
            assert waiting_for(producer, 1) > 1, "batches were due all the time"
            loop = asyncio.get_running_loop()
            for _ in range(50):
                assert not producer._sender.is_stuck(2), loop.time()
                await producer.enqueue("a", bytes(1000), partition=1)
                await asyncio.sleep(0.5)

    simulate(scenario, brokers=2)


def test_a_broker_is_tried_again_when_its_records_have_expired() -> None:
    """Nothing waits for it any more, so nothing would ever show that it is back."""

    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with open_producer(cluster, 2000, delivery_timeout_ms=10_000, request_timeout_ms=5000) as producer:
            await produce(producer, 5)
            cluster.brokers[2].stop()
            await produce(producer, 8)
            await asyncio.sleep(20)
            assert waiting_for(producer, 1) == 0
            await cluster.brokers[2].start()
            await asyncio.sleep(5)
            assert (await produce(producer, 10))[1]

    simulate(scenario, brokers=2)


def test_without_the_timeout_a_silent_broker_gets_records_all_the_same() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with open_producer(cluster, 0) as producer:
            cluster.on(ProduceRequest, lambda call: SILENCE if call.node_id == 2 else USUAL)
            await produce(producer, 8)
            before = waiting_for(producer, 1)
            await produce(producer, 8)
            assert waiting_for(producer, 1) > before
            await producer.close(timeout_s=0)

    simulate(scenario, brokers=2)
