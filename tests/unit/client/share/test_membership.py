from __future__ import annotations

import asyncio

from millbeck.client.cluster import Cluster
from millbeck.client.share.config import ShareConsumerConfig
from millbeck.client.share.membership import ShareMembership
from millbeck.kernel.environment import Environment
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import create, share_harness


async def until(condition: object, seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.05)


def test_a_member_hears_of_its_partitions_and_leaves() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client, partitions=2)
        cluster = Cluster(environment, ShareConsumerConfig.parse({"bootstrap.servers": "n1:9092", "group.id": "g"}))
        changes: list[int] = []
        membership = ShareMembership(cluster, "g", None, lambda: changes.append(1))
        membership.subscribe(["t"])
        await until(lambda: membership.assigned == {topic_id: [0, 1]})
        assert changes
        assert membership.epoch > 0
        await membership.leave()
        assert membership.epoch == 0
        await cluster.close()

    share_harness().run(scenario)


def test_a_member_that_was_removed_joins_again() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        cluster = Cluster(environment, ShareConsumerConfig.parse({"bootstrap.servers": "n1:9092", "group.id": "g"}))
        membership = ShareMembership(cluster, "g", None, lambda: None)
        membership.subscribe(["t"])
        await until(lambda: membership.assigned == {topic_id: [0]})
        membership.epoch = 99
        membership.subscribe(["t"])
        await until(lambda: membership.epoch not in (0, 99) and membership.assigned == {topic_id: [0]})
        assert membership.failure is None
        await cluster.close()

    share_harness().run(scenario)
