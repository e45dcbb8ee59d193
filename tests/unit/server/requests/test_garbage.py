"""Requests, deleted topics and closed connections leave nothing to the garbage collector.

A cycle for each request is a seventh of a small request's cost, and a collection of many is a pause. What is in a cycle
when the collector's objects are frozen, as after a change of many partitions, is never freed at all.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from millbeck.kernel.environment import Environment
from millbeck.metadata.image import PartitionRegistration
from millbeck.wire.framing import request_prefix
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.real_node import running

COUNT = 30
FILES_DELETED_SECONDS = 5
OF_A_REQUEST = (
    *("CachedPartition", "Call", "DelayedFetch", "DelayedProduce"),
    *("PartitionAppend", "PartitionRead", "Staged", "Timer"),
)


@pytest.fixture(autouse=True)
def kept_garbage() -> Iterator[None]:
    """What the collector finds is kept, so that it can be looked at."""
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield
    gc.set_debug(0)
    gc.garbage.clear()


def found() -> Counter[str]:
    gc.collect()
    names = Counter(type(garbage).__name__ for garbage in gc.garbage)
    return Counter({name: count for name, count in names.items() if name in OF_A_REQUEST and count >= COUNT})


def found_of_the_node() -> Counter[str]:
    """Everything of ours but the simulator, whose disk has cycles of its own."""
    gc.collect()
    classes = Counter(type(garbage) for garbage in gc.garbage)
    ours = [
        each for each in classes if each.__module__.startswith("millbeck.") and ".simulation." not in each.__module__
    ]
    return Counter({each.__name__: classes[each] for each in ours if classes[each] >= COUNT})


def produce(acks: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=one_batch(b"x"))
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def fetch(offset: int, max_wait_ms: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[partition])])


async def make_topic(client: Client, partitions: int = 1) -> None:
    await client.ask(CreateTopicsRequest(topics=[CreatableTopic("t", partitions, 1)], timeout_ms=1000), 5)


@pytest.mark.parametrize("acks", [1, -1])
def test_produce_leaves_no_garbage(acks: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await make_topic(client)
        for _ in range(COUNT):
            await client.ask(produce(acks), 9)

    BrokerHarness().run(scenario)
    assert found() == Counter()


@pytest.mark.parametrize("offset", [0, 1], ids=["answered at once", "after a wait"])
def test_fetch_leaves_no_garbage(offset: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await make_topic(client)
        await client.ask(produce(1), 9)
        for _ in range(COUNT):
            await client.ask(fetch(offset, 5), 11)

    BrokerHarness().run(scenario)
    assert found() == Counter()


def test_deleted_topics_leave_no_garbage() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> Counter[str]:
        for partitions in (1, COUNT):  # the first time some things are made once and for all
            gc.collect()
            gc.garbage.clear()
            await make_topic(client, partitions)
            await client.ask(produce(-1), 9)
            await client.ask(fetch(0, 5), 11)
            await client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
            await asyncio.sleep(FILES_DELETED_SECONDS)
        return found_of_the_node()

    assert BrokerHarness(log_segment_delete_delay_ms="1000").run(scenario) == Counter()


def test_closed_connections_leave_no_garbage() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> Counter[str]:
        await make_topic(client)
        for _ in range(COUNT):
            other = await harness.connect(environment)
            await other.ask(produce(-1), 9)
            other.send(fetch(1, 500), 11)  # still parked when its connection ends
            await asyncio.sleep(0.01)
            other.close()
            await asyncio.sleep(1)
        return found_of_the_node()

    assert BrokerHarness().run(scenario) == Counter()


def test_closed_connections_of_real_sockets_leave_no_garbage(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        address = ("127.0.0.1", node.listeners[0].port)
        for number in range(COUNT):
            with socket.create_connection(address, timeout=10) as client:
                client.sendall(request_prefix(18, 0, number, None, 0))
                assert client.recv(1)
        while node.listeners[0].connections:
            time.sleep(0.01)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), node._loop).result(10)  # the last one is let go of by now
        assert found_of_the_node() == Counter()
        assert Counter(type(garbage).__name__ for garbage in gc.garbage)["_SelectorSocketTransport"] < COUNT


def test_deleted_topics_live_on_in_no_image() -> None:
    """Replies are kept for one image; the one before goes even where nobody asks again."""

    def living() -> int:
        gc.collect()
        gc.garbage.clear()
        return sum(isinstance(each, PartitionRegistration) for each in gc.get_objects())

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> int:
        before = living()
        await make_topic(client, COUNT)
        assert living() - before >= COUNT
        await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        await client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
        await asyncio.sleep(1)
        return living() - before

    assert BrokerHarness().run(scenario) == 0
