"""Requests leave nothing to the garbage collector: what they are made of is free when they are answered.

A cycle for each request is a seventh of a small request's cost, and a collection of many is a pause.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator

import pytest
from house import Client, House, one_batch

from millbeck.kernel.environment import Environment
from millbeck.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

COUNT = 30
OF_A_REQUEST = ("Appending", "Call", "Fetching", "ProduceReply", "Staged", "Timer", "Wanted")


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


def produce(acks: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=one_batch(b"x"))
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def fetch(offset: int, max_wait_ms: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[partition])])


async def make_topic(client: Client) -> None:
    await client.ask(CreateTopicsRequest(topics=[CreatableTopic("t", 1, 1)], timeout_ms=1000), 5)


@pytest.mark.parametrize("acks", [1, -1])
def test_produce_leaves_no_garbage(acks: int) -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        await make_topic(client)
        for _ in range(COUNT):
            await client.ask(produce(acks), 9)

    House().run(scenario)
    assert found() == Counter()


@pytest.mark.parametrize("offset", [0, 1], ids=["answered at once", "after a wait"])
def test_fetch_leaves_no_garbage(offset: int) -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        await make_topic(client)
        await client.ask(produce(1), 9)
        for _ in range(COUNT):
            await client.ask(fetch(offset, 5), 11)

    House().run(scenario)
    assert found() == Counter()
