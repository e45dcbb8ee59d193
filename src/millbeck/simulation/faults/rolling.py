"""Faults on one node at a time, with all replicas in sync in between, for runs of groups.

The faults of a cluster run overlap and have a budget (`simulation.faults`). These runs test coordinators and their
clients, for which faults that lose no data are sufficient.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.kernel.errors import InvalidReplicationFactor
from millbeck.simulation.cluster import SimCluster, SimNode

KINDS: Final = ("crash", "pause", "clean restart", "power loss")
POLL_SECONDS: Final = 0.5
PAUSE_SECONDS_MAX: Final = 6.0
POLLS_MAX: Final = 100


def drawn_kinds(dice: random.Random) -> tuple[str, ...]:
    """Some kinds of faults, chosen by the seed."""
    return tuple(kind for kind in KINDS if dice.random() < 0.6) or ("crash",)


async def create_topics(admin: Admin, topics: Sequence[NewTopic]) -> None:
    """Create topics once all brokers are registered."""
    while True:
        try:
            (await admin.create_topics(topics, timeout_s=60)).all()
        except InvalidReplicationFactor:
            await asyncio.sleep(POLL_SECONDS)
        else:
            return


async def break_node(
    cluster: SimCluster, member: SimNode, kind: str, dice: random.Random, *, topics: Sequence[str]
) -> None:
    """Inject one fault and wait until it is repaired and all replicas of the topics are in sync."""
    machine = cluster.machine(member)
    if not machine.is_running:
        cluster.start(member)
        return
    match kind:
        case "crash":
            machine.crash()
        case "power loss":
            machine.power_loss()
        case "pause":
            machine.pause(1 + dice.random() * (PAUSE_SECONDS_MAX - 1))
            await asyncio.sleep(PAUSE_SECONDS_MAX)
            return
        case _:
            await cluster.stop(member)
    await asyncio.sleep(0.5 + dice.random() * 4)
    if not machine.is_running:
        cluster.start(member)
    # At the next fault no two nodes may lack acknowledged records.
    await wait_in_sync(cluster, topics)


async def wait_in_sync(cluster: SimCluster, topics: Sequence[str]) -> None:
    """Wait a limited time until all nodes run and see all replicas of these topics in sync."""
    for _ in range(POLLS_MAX):
        await asyncio.sleep(POLL_SECONDS)
        if is_in_sync(cluster, topics):
            return


def is_in_sync(cluster: SimCluster, topics: Sequence[str]) -> bool:
    images = [node.broker.image for node in cluster.running()]
    if len(images) < len(cluster.members):
        return False
    found = [image.topics.named(name) for image in images for name in topics]
    return all(
        topic is None or all(len(each.isr) == len(each.replicas) for each in topic.partitions.values())
        for topic in found
    )
