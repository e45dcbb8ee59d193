"""Settings that are made one after another, on a cluster of one node."""

from __future__ import annotations

import asyncio
import random

from millbeck.kernel.environment import Environment
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.workloads.leaders import MultiNodeCluster
from millbeck.simulation.workloads.settings import make_settings


def test_what_was_confirmed_is_in_the_metadata() -> None:
    cluster = SimCluster(1)
    heard: list[str] = []

    async def scenario(environment: Environment) -> int:
        cluster.start_all()
        clients = MultiNodeCluster(environment, cluster.addresses, random.Random(1))
        making = asyncio.create_task(make_settings(clients, random.Random(1), heard.append))
        await asyncio.sleep(15)
        clients.is_calm = True
        return await making

    with cluster.world as world:
        count = world.run(scenario, limit_s=60)
        image = cluster.running()[0].broker.image
        assert count == len(heard) > 2
        assert all(image.configs.of_group(group) for group in heard)
