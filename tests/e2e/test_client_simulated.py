"""The client and a whole node in one simulated world: the node is killed, paused and cut off while records flow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from millbeck.client import Admin, Consumer, Producer
from millbeck.client.admin.results import NewTopic
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import IllegalGeneration, RebalanceInProgress, UnknownMemberId
from millbeck.kernel.ids import TopicPartition
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node, NodeSettings
from millbeck.simulation import World
from millbeck.simulation.environment.options import NetworkOptions, WorldOptions

SETTINGS = {
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://:9092",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
BOOTSTRAP = {"bootstrap.servers": "n1:9092"}
PARTITION_COUNT = 3


async def serve(environment: Environment) -> None:
    config = NodeConfig(SETTINGS)
    format_directories(environment, config, ignore_formatted=True)
    node = Node(environment, config, NodeSettings(serves_metrics=False))
    await node.start()
    await node.failed


def simulate(
    seed: int, scenario: Callable[[World, Environment], Coroutine[Any, Any, None]], *, reset: float = 0.0
) -> None:
    options = WorldOptions(network=NetworkOptions(reset=reset))
    with World(seed, options) as world:
        node = world.node("n1")
        node.start(serve)

        async def whole(environment: Environment) -> None:
            before = asyncio.all_tasks()
            async with Admin(BOOTSTRAP, environment=environment) as admin:
                wanted = NewTopic(name="t", partition_count=PARTITION_COUNT, replication_factor=1)
                (await admin.create_topics([wanted], timeout_s=300)).all()
            await scenario(world, environment)
            mine = {task for task in asyncio.all_tasks() - before if "millbeck.client" in repr(task.get_coro())}
            assert not mine, f"tasks left behind: {mine}"

        world.run(whole, limit_s=3600)


async def read_all(environment: Environment, count: int) -> dict[int, list[bytes | None]]:
    found: dict[int, list[bytes | None]] = {number: [] for number in range(PARTITION_COUNT)}
    async with Consumer(BOOTSTRAP | {"auto.offset.reset": "earliest"}, environment=environment) as consumer:
        consumer.assign([TopicPartition("t", number) for number in found])
        async with asyncio.timeout(600):
            while sum(map(len, found.values())) < count:
                for partition, records in (await consumer.poll(timeout_s=1)).items():
                    found[partition.partition] += [record.value for record in records]
        assert await consumer.poll(timeout_s=5) == {}
    return found


async def disturb(world: World, dice: Callable[[int], int]) -> None:
    node = world.node("n1")
    while True:
        await asyncio.sleep(0.2 + dice(1500) / 1000)
        match dice(3):
            case 0:
                node.crash()
                await asyncio.sleep(dice(2000) / 1000)
                node.start(serve)
            case 1:
                node.pause(dice(4000) / 1000)
            case 2:
                world.network.partition(["harness"], ["n1"])
                await asyncio.sleep(dice(5000) / 1000)
                world.network.heal()


@pytest.mark.parametrize("seed", range(3))
def test_records_arrive_once_and_in_order_whatever_happens_to_the_node(seed: int) -> None:
    async def scenario(world: World, environment: Environment) -> None:
        trouble = asyncio.ensure_future(disturb(world, environment.randomness.below))
        settings = BOOTSTRAP | {"linger.ms": 20, "batch.size": 500, "request.timeout.ms": 3000}
        settings |= {"delivery.timeout.ms": 600_000}
        count = 600
        async with Producer(settings, environment=environment) as producer:
            sent = []
            for index in range(count):
                number = index % PARTITION_COUNT
                sent.append((number, await producer.enqueue("t", b"%d" % index, partition=number)))
                await asyncio.sleep(0.02)
            await producer.flush()
        trouble.cancel()
        world.network.heal()
        found = await read_all(environment, count)
        for number in range(PARTITION_COUNT):
            assert found[number] == [b"%d" % index for index in range(count) if index % PARTITION_COUNT == number]
            offsets = [future.result().offset for partition, future in sent if partition == number]
            assert [offset for offset in offsets if offset >= 0] == [
                place for place, offset in enumerate(offsets) if offset >= 0
            ]

    simulate(seed, scenario, reset=0.0003)


@pytest.mark.parametrize("seed", range(3))
def test_a_group_reads_everything_while_members_come_and_go(seed: int) -> None:
    async def scenario(world: World, environment: Environment) -> None:
        settings: dict[str, Any] = BOOTSTRAP | {
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "partition.assignment.strategy": ["range", "sticky", "cooperative-sticky"][seed % 3],
        }
        count = 300
        seen: dict[tuple[int, int], bytes | None] = {}

        async def member(polls: int | None) -> None:
            async with Consumer(settings, environment=environment) as consumer:
                consumer.subscribe(["t"])
                while polls is None or polls > 0:
                    for partition, records in (await consumer.poll(timeout_s=0.3, max_records=10)).items():
                        for record in records:
                            seen[partition.partition, record.offset] = record.value
                    polls = None if polls is None else polls - 1
                    with suppress(RebalanceInProgress, IllegalGeneration, UnknownMemberId):
                        await consumer.commit(timeout_s=30)

        async def produce() -> None:
            async with Producer(BOOTSTRAP | {"linger.ms": 5}, environment=environment) as producer:
                for index in range(count):
                    await producer.enqueue("t", b"%d" % index, partition=index % PARTITION_COUNT)
                    await asyncio.sleep(0.05)

        writing = asyncio.ensure_future(produce())
        steady = asyncio.ensure_future(member(None))
        for _ in range(4):
            await member(5 + environment.randomness.below(20))
        await writing
        async with asyncio.timeout(300):
            while len(seen) < count:
                await asyncio.sleep(1)
        steady.cancel()
        await asyncio.wait([steady])
        assert sorted(int(value or b"") for value in seen.values()) == list(range(count))
        async with Consumer(settings, environment=environment) as consumer:
            partitions = [TopicPartition("t", number) for number in range(PARTITION_COUNT)]
            committed = await consumer.committed(partitions)
            assert all(entry is not None and entry.offset <= count // PARTITION_COUNT for entry in committed.values())

    simulate(seed, scenario)
