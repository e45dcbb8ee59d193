"""Workloads of several nodes go to the leader, and look for it again when it is gone."""

from __future__ import annotations

import asyncio
import random

from millbeck.kernel.environment import Environment
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node, NodeSettings
from millbeck.simulation import World
from millbeck.simulation.workloads.leaders import MultiNodeCluster


async def serve(environment: Environment) -> None:
    config = NodeConfig(
        {
            "log.dirs": "/data",
            "listeners": "PLAINTEXT://:9092",
            "advertised.listeners": "PLAINTEXT://n1:9092",
            "metrics.http.port": "0",
        }
    )
    format_directories(environment, config, ignore_formatted=True)
    node = Node(environment, config, NodeSettings())
    await node.start()
    await node.failed


def test_the_leader_is_found_through_any_node_that_answers() -> None:
    with World(3) as world:
        node = world.node("n1")
        world.node("n2")
        node.start(serve)

        async def scenario(environment: Environment) -> None:
            cluster = MultiNodeCluster(environment, [("n1", 9092), ("n2", 9092)], random.Random(1))
            await cluster.create_topic(1, {})
            client = await cluster.connect_to(0)
            assert not client.is_lost
            client.close()
            node.crash()
            looking = asyncio.create_task(cluster.connect_to(0))
            await asyncio.sleep(5)
            assert not looking.done()
            node.start(serve)
            client = await asyncio.wait_for(looking, 30)
            client.close()

        world.run(scenario, limit_s=120)
