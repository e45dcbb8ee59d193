"""`ParallelProcessor`: order by key, bounds, and offsets that never pass a record that is not done."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client import Consumer, Record, TopicPartition
from millbeck.client.patterns import ParallelProcessor
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.records import batch
from tests.unit.client.fake_cluster import FakeCluster, FakePartition, simulate
from tests.unit.client.one_node import HERE, in_world

A0 = TopicPartition("a", 0)


def consumer_of(cluster: FakeCluster, **changed: Any) -> Consumer[bytes, bytes]:
    settings = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest", "group.id": "g"}
    return Consumer(settings, environment=cluster.environment, **{"enable_auto_commit": False} | changed)


def fill(log: FakePartition, count: int, keys: int) -> None:
    start = log.end_offset
    log.append(
        batch.build([Record(-1, 1, b"k%d" % (number % keys), b"%d" % number) for number in range(start, start + count)])
    )


def committed(cluster: FakeCluster) -> int:
    return cluster.committed.get(("g", "a", 0), (-1, -1, ""))[0]


def test_keys_keep_their_order_and_others_run_at_the_same_time() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 100, keys=10)
        seen: dict[bytes | None, list[int]] = {}
        running: set[bytes | None] = set()
        most = 0

        async def handle(record: Record[bytes, bytes]) -> None:
            nonlocal most
            assert record.key not in running
            running.add(record.key)
            most = max(most, len(running))
            await asyncio.sleep(cluster.environment.randomness.below(100) / 1000)
            running.remove(record.key)
            seen.setdefault(record.key, []).append(record.offset)
            if sum(map(len, seen.values())) == 100:
                processor.stop()

        async with consumer_of(cluster) as consumer:
            processor = ParallelProcessor(consumer, handle, concurrency=6)
            await processor.run(["a"])
        assert most == 6
        assert seen == {b"k%d" % key: list(range(key, 100, 10)) for key in range(10)}
        assert committed(cluster) == 100

    simulate(scenario)


def test_the_offset_of_a_record_that_is_not_done_is_not_passed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 20, keys=20)
        release = asyncio.Event()

        async def handle(record: Record[bytes, bytes]) -> None:
            if record.offset == 5:
                await release.wait()

        async with consumer_of(cluster, auto_commit_interval_ms=1000) as consumer:
            processor = ParallelProcessor(consumer, handle)
            task = asyncio.create_task(processor.run(["a"]))
            await asyncio.sleep(10)
            assert committed(cluster) == 5
            release.set()
            await asyncio.sleep(3)
            assert committed(cluster) == 20
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    simulate(scenario)


def test_an_error_of_the_handler_is_raised_and_its_record_comes_again() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 20, keys=20)
        seen: list[int] = []

        async def handle(record: Record[bytes, bytes]) -> None:
            if record.offset == 7 and len(seen) < 100:
                raise ZeroDivisionError
            seen.append(record.offset)

        async with consumer_of(cluster) as consumer:
            with pytest.raises(ZeroDivisionError):
                await ParallelProcessor(consumer, handle, order="partition").run(["a"])
        assert seen == list(range(7))
        assert committed(cluster) == 7

    simulate(scenario)


def test_no_more_wait_than_the_bound_and_one_poll() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        for _ in range(50):
            fill(log, 20, keys=3)
        handled = 0

        async def handle(record: Record[bytes, bytes]) -> None:
            nonlocal handled
            assert processor.buffered_count <= 30 + 20
            await asyncio.sleep(0.01)
            handled += 1
            if handled == 1000:
                processor.stop()

        async with consumer_of(cluster, max_poll_records=20) as consumer:
            processor = ParallelProcessor(consumer, handle, concurrency=3, buffered_max=30)
            await processor.run(["a"])
        assert handled == 1000
        assert committed(cluster) == 1000

    simulate(scenario)


def test_partitions_that_move_are_finished_first_and_nothing_is_handled_twice() -> None:
    async def scenario(environment: Environment) -> None:
        from millbeck.client import Producer

        seen: list[bytes] = []
        is_full = asyncio.Event()

        async def handle(record: Record[bytes, bytes]) -> None:
            await asyncio.sleep(0.2)
            seen.append(record.value or b"")
            if len(seen) >= 200:
                is_full.set()

        async def member() -> None:
            settings: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
            async with Consumer(HERE, environment=environment, **settings) as consumer:
                await ParallelProcessor(consumer, handle, concurrency=2).run(["t"])

        async with Producer(HERE, environment=environment) as producer:
            for number in range(200):
                await producer.send("t", b"%d" % number, key=b"%d" % (number % 8))
        members = [asyncio.create_task(member())]
        await asyncio.sleep(8)
        members.append(asyncio.create_task(member()))
        await is_full.wait()
        await asyncio.sleep(2)
        assert sorted(seen) == sorted(b"%d" % number for number in range(200))
        for task in members:
            task.cancel()
        await asyncio.wait(members)

    in_world(scenario)


def test_wrong_arguments_are_refused() -> None:
    async def handle(record: Record[bytes, bytes]) -> None: ...

    consumer: Consumer[bytes, bytes] = Consumer({"bootstrap.servers": "h:1", "group.id": "g"})
    with pytest.raises(InvalidConfig, match=r"enable\.auto\.commit=false"):
        ParallelProcessor(consumer, handle)
    manual: Consumer[bytes, bytes] = Consumer({"bootstrap.servers": "h:1"}, group_id="g", enable_auto_commit=False)
    with pytest.raises(ValueError, match="concurrency"):
        ParallelProcessor(manual, handle, concurrency=0)
    with pytest.raises(ValueError, match="order"):
        ParallelProcessor(manual, handle, order="random")  # type: ignore[arg-type]
