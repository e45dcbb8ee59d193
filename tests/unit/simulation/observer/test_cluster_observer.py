"""An observer of a real cluster in the simulator: it sees what happens, and is told what it cannot see."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.kernel.environment import Environment
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.environment.node import stream
from millbeck.simulation.observer.cluster_observer import ClusterObserver, Counts
from millbeck.simulation.observer.findings import InvariantBroken
from millbeck.simulation.workloads.leaders import MultiNodeCluster


def test_it_counts_elections_and_knows_every_log() -> None:
    cluster = SimCluster(3)
    observer = ClusterObserver(cluster, min_insync_replicas=2)

    async def scenario(environment: Environment) -> None:
        cluster.start_all()
        clients = MultiNodeCluster(environment, cluster.addresses, stream(3, "addresses"))
        await clients.create_topic(2, {}, replication_factor=3)
        await asyncio.sleep(2)
        assert all(observer.is_registered(each.number) for each in cluster.members)

    with cluster.world as world:
        world.run(scenario, limit_s=60)
    counts = observer.counts(5)
    assert counts.quorum_elections >= 1
    assert counts.partition_elections == 2
    assert counts.acknowledged == 5
    assert set(observer.quorum.shadows) == {1, 2, 3}
    assert set(observer.data.of("history", 1).shadows) == {1, 2, 3}
    assert observer.metadata.newest is not None
    member = cluster.members[0]
    assert not observer.is_registered(member.number), "its process is gone with the world"
    observer.ended_unclean(member)
    assert member.number in observer.metadata.unclean
    observer.lost_data(member)
    assert member.number in observer.data.of("history", 0).wounded


def test_a_broken_invariant_ends_the_run_at_once() -> None:
    cluster = SimCluster(3)
    observer = ClusterObserver(cluster, min_insync_replicas=2)
    observer.quorum.leaders.update(dict.fromkeys(range(10), "somebody else"))

    async def scenario(environment: Environment) -> None:
        cluster.start_all()
        await asyncio.sleep(60)

    with cluster.world as world, pytest.raises(InvariantBroken, match="R1"):
        world.run(scenario, limit_s=90)
    assert observer.findings.first is not None
    assert observer.findings.first.invariant == "R1"


def test_counts_add_up() -> None:
    one = Counts(quorum_elections=1, isr_changes=2)
    assert one + Counts(quorum_elections=3, truncations=1) == Counts(quorum_elections=4, isr_changes=2, truncations=1)
