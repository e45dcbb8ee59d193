"""Each kind of fault is done to a small cluster and undone again."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.kernel.environment import Environment
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.environment.node import stream
from millbeck.simulation.faults import schedule as kinds
from millbeck.simulation.faults.budget import FaultBudget
from millbeck.simulation.faults.injector import FaultInjector
from millbeck.simulation.faults.schedule import Fault
from millbeck.simulation.observer.cluster_observer import ClusterObserver
from millbeck.simulation.workloads.leaders import MultiNodeCluster
from millbeck.simulation.workloads.produce_and_read import TOPIC


@pytest.mark.parametrize("chunk", [kinds.KINDS[:12], kinds.KINDS[12:]], ids=["nodes", "links and disks"])
def test_every_kind_of_fault_comes_about_and_is_over_in_the_end(chunk: tuple[str, ...]) -> None:
    cluster = SimCluster(2, is_combined=False)
    observer = ClusterObserver(cluster, min_insync_replicas=2)
    injector = FaultInjector(cluster, observer, FaultBudget(observer), topic=TOPIC, partition_count=1, flushes=True)
    faults = [
        Fault(at_s=5.0 * index, kind=kind, seconds=0.2, target=0.7, value=0.6) for index, kind in enumerate(chunk)
    ]

    async def scenario(environment: Environment) -> None:
        cluster.start_all()
        clients = MultiNodeCluster(environment, cluster.addresses, stream(2, "addresses"))
        options = {"min.insync.replicas": "2", "flush.messages": "1"}
        await clients.create_topic(1, options, replication_factor=3)
        await asyncio.sleep(2)
        await injector.run(faults)
        await asyncio.sleep(1)

    with cluster.world as world:
        world.run(scenario, limit_s=300)
    # Nothing was written, so there is nothing that could rot.
    assert set(injector.done) == set(chunk) - {kinds.ROTTING_DISK}
    assert all(cluster.machine(member).disk.faults == cluster.world.options.disk for member in cluster.members)
    assert not cluster.world.network._cut


def test_what_would_lose_more_than_is_promised_is_passed_over() -> None:
    cluster = SimCluster(2)
    observer = ClusterObserver(cluster, min_insync_replicas=2)
    injector = FaultInjector(cluster, observer, FaultBudget(observer), topic=TOPIC, partition_count=1, flushes=False)
    faults = [
        Fault(at_s=0.1, kind=kind, seconds=0.1, target=0, value=0)
        for kind in (kinds.POWER_LOSS_OF_ALL, kinds.EMPTY_DISK)
    ]

    async def scenario(environment: Environment) -> None:
        await injector.run(faults)

    with cluster.world as world:
        world.run(scenario, limit_s=60)
    assert injector.done == {}


def test_a_busy_controller_takes_no_other_decision_meanwhile() -> None:
    cluster = SimCluster(2)
    observer = ClusterObserver(cluster, min_insync_replicas=2)
    injector = FaultInjector(cluster, observer, FaultBudget(observer), topic=TOPIC, partition_count=1, flushes=False)
    busy: list[bool] = []

    async def scenario(environment: Environment) -> None:
        cluster.start_all()
        await asyncio.sleep(5)
        work = asyncio.create_task(injector.run([Fault(1.0, kinds.BUSY_CONTROLLER, 2.0, 0.0, 0.0)]))
        for _ in range(3):
            await asyncio.sleep(1.5)
            busy.append(any(node.broker.quorum.deciding.locked() for node in cluster.running()))
        await work

    with cluster.world as world:
        world.run(scenario, limit_s=60)
    assert busy == [True, False, False]
    assert injector.done == {kinds.BUSY_CONTROLLER: 1}
