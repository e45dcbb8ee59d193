"""Share consumers against a whole node in the simulator."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.client.share import AcknowledgeType, AcquiredRecord, ShareConsumer
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InvalidConfig, InvalidRequest
from millbeck.kernel.ids import TopicPartition
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import configure, create, produce, share_harness

SETTINGS = {"bootstrap.servers": "n1:9092", "group.id": "g"}
EXPLICIT = SETTINGS | {"share.acknowledgement.mode": "explicit"}


async def some(consumer: ShareConsumer, count: int, timeout_s: float = 20) -> list[AcquiredRecord]:
    found: list[AcquiredRecord] = []
    async with asyncio.timeout(timeout_s):
        while len(found) < count:
            found += await consumer.poll(timeout_s=0.5)
    return found


async def prepared(client: Client, partitions: int = 1) -> None:
    await create(client, partitions=partitions)
    await configure(client, "g", share_auto_offset_reset="earliest")


def test_implicit_consumers_share_the_records_and_accept_each_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepared(client, 2)
        accepted: list[tuple[TopicPartition, int]] = []

        def told(partition: TopicPartition, offsets: dict[int, AcknowledgeType], error: ApiError | None) -> None:
            assert error is None
            accepted.extend((partition, offset) for offset in offsets)

        consumers = [ShareConsumer(SETTINGS, on_acknowledged=told, environment=environment) for _ in range(3)]  # type: ignore[arg-type]
        for consumer in consumers:
            consumer.subscribe(["t"])
        for index in (0, 1):
            for _ in range(5):
                await produce(client, b"v", partition=index)
        async with asyncio.timeout(60):
            while len(accepted) < 10:
                await asyncio.gather(*[consumer.poll(timeout_s=0.3) for consumer in consumers])
        for consumer in consumers:
            await consumer.close()
        assert sorted(accepted) == [(TopicPartition("t", index), offset) for index in (0, 1) for offset in range(5)]

    share_harness().run(scenario)


def test_explicit_consumers_say_what_became_of_each() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepared(client)
        await produce(client, b"a", b"b", b"c")
        async with ShareConsumer(EXPLICIT, environment=environment) as consumer:
            consumer.subscribe(["t"])
            first = await some(consumer, 3)
            assert [each.record.value for each in first] == [b"a", b"b", b"c"]
            consumer.acknowledge(first[0])
            consumer.acknowledge(first[1], AcknowledgeType.RELEASE)
            consumer.acknowledge(first[2], AcknowledgeType.REJECT)
            assert await consumer.commit() == {TopicPartition("t", 0): None}
            (again,) = await some(consumer, 1, 1.5)  # before the lock times out
            assert (again.record.value, again.delivery_count) == (b"b", 2)
            consumer.acknowledge(again, AcknowledgeType.RENEW)
            assert await consumer.commit() == {TopicPartition("t", 0): None}
        async with ShareConsumer(SETTINGS, environment=environment) as another:
            another.subscribe(["t"])
            (third,) = await some(another, 1)
            assert third.delivery_count == 3, "what was not settled was given back when the other closed"

    share_harness().run(scenario)


def test_a_restarted_node_is_found_again_and_nothing_accepted_comes_twice() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepared(client)
        await produce(client, b"a", b"b")
        async with ShareConsumer(EXPLICIT, environment=environment) as consumer:
            consumer.subscribe(["t"])
            first = await some(consumer, 2)
            consumer.acknowledge(first[0])
            assert await consumer.commit() == {TopicPartition("t", 0): None}
            harness.machine.crash()
            await harness.start()
            (again,) = await some(consumer, 1, 60)
            assert again.record.value == b"b"

    share_harness(**{"log.flush.interval.messages": "1"}).run(scenario)


def test_offsets_without_records_are_told_as_gaps() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepared(client)
        await produce(client, b"a", b"b")
        async with ShareConsumer(EXPLICIT, environment=environment) as consumer:
            consumer.subscribe(["t"])
            first = await some(consumer, 2)
            for each in first:
                consumer.acknowledge(each)
            outcomes = await consumer.commit()
            assert list(outcomes.values()) == [None]
            assert await consumer.poll(timeout_s=0.2) == []

    share_harness().run(scenario)


def test_a_consumer_needs_a_group_and_its_mode() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        with pytest.raises(InvalidConfig, match=r"group\.id"):
            ShareConsumer({"bootstrap.servers": "n1:9092"}, environment=environment)
        consumer = ShareConsumer(SETTINGS, environment=environment)
        delivery = AcquiredRecord(TopicPartition("t", 0), None, 1, b"", 1)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest):
            consumer.acknowledge(delivery)
        await consumer.close()

    share_harness().run(scenario)


def test_a_member_that_unsubscribes_gives_its_records_back_and_may_come_again() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepared(client)
        await produce(client, b"a", b"b")
        async with ShareConsumer(EXPLICIT, environment=environment) as consumer:
            with pytest.raises(InvalidRequest, match="subscribe"):
                await consumer.poll()
            assert consumer.acquisition_lock_timeout_ms is None
            consumer.subscribe(["t"])
            assert consumer.subscription == ["t"]
            first = await some(consumer, 2)
            consumer.acknowledge(first[0])
            assert consumer.acquisition_lock_timeout_ms == 2_000
            await consumer.unsubscribe()
            assert consumer.subscription == []
            with pytest.raises(InvalidRequest, match="subscribe"):
                await consumer.poll()
            consumer.subscribe(["t"])
            (again,) = await some(consumer, 1, 1.5)  # before the lock times out
            assert (again.record.value, again.delivery_count) == (b"b", 2)
            consumer.acknowledge(again)
            assert list((await consumer.commit()).values()) == [None]

    share_harness().run(scenario)
