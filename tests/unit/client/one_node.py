"""A whole node in the simulator, for clients that need a coordinator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.kernel.environment import Environment
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node, NodeSettings
from millbeck.simulation import World

HERE = {"bootstrap.servers": "n1:9092"}
TOPICS = {"t": 2}


def in_world(
    scenario: Callable[[Environment], Awaitable[None]],
    transaction_version: int = 2,
    topics: Mapping[str, int] = TOPICS,
    limit_s: float = 300,
) -> None:
    """Run a scenario beside a node with these topics (name and partition count), in virtual time."""
    world = World(7)

    async def main(environment: Environment) -> None:
        config = NodeConfig(
            {
                "log.dirs": "/data",
                "listeners": "PLAINTEXT://:9092",
                "offsets.topic.replication.factor": "1",
                "offsets.topic.num.partitions": "2",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
                "transaction.state.log.num.partitions": "2",
                "default.replication.factor": "1",
                "metrics.http.port": "0",
                "transaction.two.phase.commit.enable": "true",
                "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
                "unstable.feature.versions.enable": str(transaction_version > 2).lower(),
            }
        )
        levels = {"transaction.version": transaction_version}
        format_directories(environment, config, features=levels, ignore_formatted=True)
        node = Node(environment, config, NodeSettings())
        await node.start()
        await node.failed

    async def whole(environment: Environment) -> None:
        world.node("n1").start(main)
        async with Admin(HERE, environment=environment) as admin:
            wanted = [
                NewTopic(name=name, partition_count=count, replication_factor=1) for name, count in topics.items()
            ]
            (await admin.create_topics(wanted)).all()
        await scenario(environment)

    with world:
        world.run(whole, limit_s=limit_s)
