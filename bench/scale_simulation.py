"""A failover in the simulator, with as many partitions as wanted: what it costs each of them.

The simulator runs three whole nodes in this process. Virtual time says how long clients would wait; the processor time
that the process needs meanwhile, of all nodes together, says whether the work per partition grows with their number.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from bench.budgets import Row
from millbeck.kernel.environment import Environment
from millbeck.metadata.image import PartitionRegistration
from millbeck.server.node import Node
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.workloads.leaders import MultiNodeCluster
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest

GROWTH_MAX = 1.5
LIMIT_SECONDS = 600.0
POLL_SECONDS = 0.001
TOPIC_PARTITIONS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFailover:
    partitions: int
    lost: int
    virtual_seconds: float
    """From the decision to the last new leader, as every node that is left has it."""
    cpu_seconds: float
    longest_seconds: float
    """The longest single turn of the loop, in processor time."""


class _Watch:
    """Looks every few virtual milliseconds, and so sees how much processor time went by between two looks."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0
        self.restart()

    def restart(self) -> None:
        self._last_s = time.process_time()

    def look(self) -> None:
        now_s = time.process_time()
        self.longest_seconds = max(self.longest_seconds, now_s - self._last_s)
        self._last_s = now_s


def simulate(partitions: int, seed: int = 1) -> SimulatedFailover:
    cluster = SimCluster(seed, settings={"num.replica.fetchers": "1"})
    found: list[SimulatedFailover] = []

    async def whole(environment: Environment) -> None:
        cluster.start_all()
        # A broker that is still fenced would be given replicas and no leaders.
        await _until(lambda: _active_count(list(cluster.nodes.values())) == 3)
        clients = MultiNodeCluster(environment, cluster.addresses, random.Random(seed))
        for number in range(partitions // TOPIC_PARTITIONS):
            await _create(clients, f"scale-{number}")
        await _until(lambda: _in_sync_count(cluster.running()) == partitions)
        controller = cluster.active_controller()
        victim = next(member for member in cluster.brokers if member is not controller)
        lost = _led_by(cluster.nodes[victim.name], victim.number)
        assert controller is not None
        quorum = cluster.nodes[controller.name].broker.quorum
        cluster.machine(victim).crash()
        others = cluster.running()
        # Nothing else happens in an idle cluster: the next record is the first of the decision.
        loop, watch = asyncio.get_running_loop(), _Watch()
        offset, began_s, decided_s = quorum.commits.appended_image.offset, 0.0, 0.0
        while quorum.commits.appended_image.offset == offset:
            watch.restart()
            began_s, decided_s = time.process_time(), loop.time()
            await asyncio.sleep(POLL_SECONDS)

        def is_over() -> bool:
            watch.look()
            return all(_is_fenced(node, victim.number) for node in others) and _serving(others) == partitions

        await _until(is_over, pause_s=POLL_SECONDS)
        found.append(
            SimulatedFailover(
                partitions=partitions,
                lost=lost,
                virtual_seconds=loop.time() - decided_s,
                cpu_seconds=time.process_time() - began_s,
                longest_seconds=watch.longest_seconds,
            )
        )

    with cluster.world as world:
        world.run(whole, limit_s=LIMIT_SECONDS)
    return found[0]


async def _create(clients: MultiNodeCluster, topic: str) -> None:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(topic, num_partitions=TOPIC_PARTITIONS, replication_factor=3)], timeout_ms=60_000
    )
    client = await clients.connect()
    (result,) = (await client.ask(request, 7, timeout_s=60)).topics
    client.close()
    if result.error_code:
        raise RuntimeError(f"{topic}: error {result.error_code}")


def _registrations(node: Node) -> Iterator[PartitionRegistration]:
    for topic in node.broker.image.topics.by_id.values():
        yield from topic.partitions.values()


def _active_count(nodes: list[Node]) -> int:
    counts = [sum(each.is_active for each in node.broker.image.cluster.brokers.values()) for node in nodes]
    return min(counts) if len(counts) == 3 else 0


def _is_fenced(node: Node, broker_id: int) -> bool:
    return node.broker.image.cluster.brokers[broker_id].is_fenced


def _led_by(node: Node, broker_id: int) -> int:
    return sum(each.leader == broker_id for each in _registrations(node))


def _in_sync_count(nodes: list[Node]) -> int:
    return min((sum(len(each.isr) == 3 for each in _registrations(node)) for node in nodes), default=0)


def _serving(nodes: list[Node]) -> int:
    """Partitions whose leader knows that it leads."""
    return sum(partition.is_leader for node in nodes for partition in node.broker.topics.all_partitions())


async def _until(condition: Callable[[], bool], *, pause_s: float = 0.05) -> None:
    while not condition():
        await asyncio.sleep(pause_s)


def simulated_rows(counts: list[int]) -> list[Row]:
    results = [simulate(count) for count in counts]
    rows = [
        Row(
            what=f"simulator, {one.partitions:,} partitions × 3: failover of {one.lost:,} leaders",
            measured=f"{one.virtual_seconds * 1000:.0f} ms virtual, {one.cpu_seconds / one.lost * 1e6:.0f} µs CPU each,"
            f" longest turn {one.longest_seconds * 1000:.0f} ms",
            budget="–",
            met=True,
        )
        for one in results
    ]
    if len(results) > 1:
        each = [one.cpu_seconds / one.lost for one in results]
        growth = each[-1] / each[0]
        rows.append(
            Row(
                what=f"simulator: CPU per leader, {counts[-1]:,} partitions over {counts[0]:,}",
                measured=f"{growth:.2f} × (median {median(each) * 1e6:.0f} µs)",
                budget=f"≤ {GROWTH_MAX} ×",
                met=growth <= GROWTH_MAX,
            )
        )
    return rows
