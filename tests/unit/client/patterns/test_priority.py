"""`by_priority`: earlier topics first, none starves, and a commit includes the record at hand only."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client import Consumer, Record, TopicPartition
from millbeck.client.patterns import by_priority
from millbeck.records import batch
from tests.unit.client.fake_cluster import FakeCluster, FakePartition, simulate

HIGH, LOW = TopicPartition("high", 0), TopicPartition("low", 0)


def consumer_of(cluster: FakeCluster, **changed: Any) -> Consumer[bytes, bytes]:
    settings = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest"}
    return Consumer(settings, environment=cluster.environment, **changed)


def fill(log: FakePartition, count: int) -> None:
    log.append(batch.build([Record(-1, 1, None, b"%d" % number) for number in range(count)]))


def test_the_first_topic_comes_first_and_the_second_gets_its_turns() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (high,) = cluster.add_topic("high")
        (low,) = cluster.add_topic("low")
        fill(high, 500)
        fill(low, 500)
        async with consumer_of(cluster) as consumer:
            consumer.assign([LOW, HIGH])
            while sum(state.has_records for state in consumer._positions) < 2:
                await asyncio.sleep(0.01)
            seen = []
            async for record in by_priority(consumer, ["high", "low"], burst=100, turn=10):
                seen.append(record.topic)
                if len(seen) == 1000:
                    break
        # Nine tenths of the places are those of the first topic while both have records.
        assert seen[:100] == ["high"] * 100
        assert seen[100:110] == ["low"] * 10
        assert seen[110:210] == ["high"] * 100
        assert seen.count("low") == 500

    simulate(scenario)


def test_a_late_record_of_the_first_topic_overtakes_a_backlog() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (high,) = cluster.add_topic("high")
        (low,) = cluster.add_topic("low")
        fill(low, 1000)
        async with consumer_of(cluster) as consumer:
            consumer.assign([LOW, HIGH])
            count = 0
            async for record in by_priority(consumer, ["high"], turn=10):
                if record.topic == "high":
                    break
                count += 1
                await asyncio.sleep(0.01)
                if count == 100:
                    fill(high, 1)
            assert count < 200

    simulate(scenario)


def test_a_commit_in_the_loop_includes_the_record_at_hand_and_closing_ends_it() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (low,) = cluster.add_topic("low")
        fill(low, 20)
        consumer = consumer_of(cluster, group_id="g", enable_auto_commit=False)
        consumer.assign([LOW])
        count = 0
        async for record in by_priority(consumer, ["low"]):
            count += 1
            if record.offset == 4:
                await consumer.commit()
                assert cluster.committed["g", "low", 0][0] == 5
                asyncio.get_running_loop().call_later(5, lambda: asyncio.ensure_future(consumer.close()))
        assert count == 20

    simulate(scenario)


def test_wrong_arguments_are_refused() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with consumer_of(cluster) as consumer:
            with pytest.raises(ValueError, match="burst"):
                await anext(by_priority(consumer, ["a"], burst=0))

    simulate(scenario)
