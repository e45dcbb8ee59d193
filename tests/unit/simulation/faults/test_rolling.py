"""A node breaks, comes back, and everybody is in sync again before the next one does."""

from __future__ import annotations

import asyncio
import random

import pytest

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.kernel.environment import Environment
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.faults.rolling import KINDS, break_node, create_topics, drawn_kinds, is_in_sync


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_fault_everybody_is_there_again(kind: str) -> None:
    cluster = SimCluster(3)

    async def scenario(environment: Environment) -> None:
        cluster.start_all()
        servers = ",".join(f"{host}:{port}" for host, port in cluster.addresses)
        async with Admin({"bootstrap.servers": servers}, environment=environment) as admin:
            await create_topics(admin, [NewTopic(name="t", partition_count=2, replication_factor=3)])
        started = environment.clock.monotonic()
        await break_node(cluster, cluster.members[0], kind, random.Random(5), topics=["t"])
        assert environment.clock.monotonic() > started
        for _ in range(40):
            if is_in_sync(cluster, ["t"]):
                break
            await asyncio.sleep(0.5)
        assert is_in_sync(cluster, ["t", "absent"])
        assert len(cluster.running()) == 3
        cluster.machine(cluster.members[1]).crash()
        assert not is_in_sync(cluster, ["t"])
        await break_node(cluster, cluster.members[1], kind, random.Random(5), topics=["t"])
        assert cluster.machine(cluster.members[1]).is_running, "whoever is down is started instead"

    cluster.world.run(scenario, limit_s=300)


def test_a_seed_may_leave_kinds_out_and_always_has_one() -> None:
    drawn = {drawn_kinds(random.Random(seed)) for seed in range(50)}
    assert all(drawn)
    assert len(drawn) > 5
