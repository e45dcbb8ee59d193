"""Trouble for a cluster one node at a time, and everybody in sync in between: what runs of groups have in common.

The faults of a whole cluster overlap and have a budget (`testing.faults`); here the coordinators and their clients are
what is looked at, and a cluster that may lose nothing is enough.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.kernel.errors import InvalidReplicationFactor
from millbeck.testing.sim_cluster import Member, SimCluster

KINDS: Final = ("crash", "pause", "clean restart", "power loss")
POLL_SECONDS: Final = 0.5
PAUSE_SECONDS_MAX: Final = 6.0
POLLS_MAX: Final = 100


def drawn_kinds(dice: random.Random) -> tuple[str, ...]:
    """Most of them are left out: what one hides, another seed shows."""
    return tuple(kind for kind in KINDS if dice.random() < 0.6) or ("crash",)


async def create_topics(admin: Admin, topics: Sequence[NewTopic]) -> None:
    """As soon as all brokers are there."""
    while True:
        try:
            (await admin.create_topics(topics, timeout_s=60)).all()
        except InvalidReplicationFactor:
            await asyncio.sleep(POLL_SECONDS)
        else:
            return


async def break_node(
    cluster: SimCluster, member: Member, kind: str, dice: random.Random, *, topics: Sequence[str]
) -> None:
    """One fault, over when this returns; then everybody has all of these topics."""
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
    # The next fault must not find two nodes that lack what was acknowledged.
    await wait_in_sync(cluster, topics)


async def wait_in_sync(cluster: SimCluster, topics: Sequence[str]) -> None:
    """Until all nodes run and know all replicas of these topics to be in sync; for a while only."""
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
