"""`python -m bench.scale`: many partitions on three nodes: idle, a restart, and the failover of half their leaders.

2,000 partitions with three replicas each. One node is stopped, so that the other two lead a thousand each, and comes
back: it leads nothing then. Then one that leads a thousand is killed. The last record acknowledged again says when all
of them had a leader; detection is taken to have been as early as it can have been, a heartbeat before the kill. What
must not grow with the number of partitions is measured in the simulator (`bench.scale_simulation`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections import defaultdict
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench import machine, raw
from bench.budgets import MIB, Row
from bench.report import stamp, write_section
from bench.scale_simulation import simulated_rows
from bench.systems import SYSTEMS
from bench.systems.cluster import BrokerCluster, wait_for
from bench.systems.node import Node

TOPIC_PARTITIONS = 100
SESSION_SECONDS, HEARTBEAT_SECONDS = 3.0, 0.5
SETTINGS = {
    "broker.session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
    "broker.heartbeat.interval.ms": str(int(HEARTBEAT_SECONDS * 1000)),
}
IDLE_SECONDS = 10.0
IN_FLIGHT = 50


class Scale:
    """One cluster with its many topics."""

    def __init__(self, cluster: BrokerCluster, partitions: int) -> None:
        self.cluster = cluster
        self.topics = [f"scale-{number}" for number in range(partitions // TOPIC_PARTITIONS)]
        self.partitions = len(self.topics) * TOPIC_PARTITIONS

    def create(self) -> float:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        started_s = time.monotonic()
        for topic in self.topics:
            admin.create_topics([NewTopic(topic, TOPIC_PARTITIONS, 3, config={"min.insync.replicas": "2"})])[
                topic
            ].result(120)
        self.wait_until_whole()
        return time.monotonic() - started_s

    def wait_until_whole(self) -> None:
        for topic in self.topics:
            self.cluster.wait_until_in_sync(topic, TOPIC_PARTITIONS)

    def idle_share(self) -> float:
        """Of one core, the busiest node's."""
        before = [node.usage().cpu_seconds for node in self.cluster.nodes]
        time.sleep(IDLE_SECONDS)
        after = [node.usage().cpu_seconds for node in self.cluster.nodes]
        return max(end - start for start, end in zip(before, after, strict=True)) / IDLE_SECONDS

    def restart(self, node: Node) -> tuple[float, float, float]:
        """Seconds until it serves and until all replicas are in sync, and what it used of a processor by then."""
        node.stop()
        wait_for(
            lambda: (
                not any(
                    node.node_id in state.isr
                    for topic in self.topics
                    for state in self.cluster.states(topic, self.cluster.running[0]).values()
                )
            ),
            deadline_s=time.monotonic() + 60,
            what=f"{node.node_id} is still in sync",
            pause_s=0.2,
        )
        started_s = time.monotonic()
        node.start()
        serving_s = time.monotonic()
        self.wait_until_whole()
        return serving_s - started_s, time.monotonic() - started_s, node.usage().cpu_seconds

    def fail_over(self) -> tuple[int, float]:
        """How many leaders were lost with the node that has most, and the seconds after detection until all are back.

        A node that is not the active controller, as long as one leads.
        """
        led: dict[int, list[tuple[str, int]]] = defaultdict(list)
        for topic in self.topics:
            for partition, state in self.cluster.states(topic).items():
                led[state.leader].append((topic, partition))
        controller = self.cluster.active_controller()
        victim_id = max(led, key=lambda node_id: (node_id != controller, len(led[node_id])))
        self.cluster.node(victim_id).kill()
        detected_s = time.monotonic() + SESSION_SECONDS - HEARTBEAT_SECONDS
        self._produce_to_all(led[victim_id], deadline_s=detected_s + 60)
        return len(led[victim_id]), time.monotonic() - detected_s

    def _produce_to_all(self, wanted: list[tuple[str, int]], *, deadline_s: float) -> None:
        batch = raw.build_batch([b"first"])
        connections = {node.node_id: raw.RawConnection(node.bootstrap) for node in self.cluster.running}
        missing = set(wanted)
        try:
            while missing:
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"{len(missing)} partitions have no leader")
                some = next(iter(connections.values()))
                for topic in sorted({topic for topic, _ in missing}):
                    by_leader: dict[int, list[int]] = defaultdict(list)
                    for partition, leader in some.partition_leaders(topic).items():
                        if (topic, partition) in missing and leader in connections:
                            by_leader[leader].append(partition)
                    for leader, partitions in by_leader.items():
                        taken = _pipelined(connections[leader], topic, partitions, batch)
                        missing -= {(topic, partition) for partition in taken}
                time.sleep(0.01)
        finally:
            for connection in connections.values():
                connection.close()


def _pipelined(connection: raw.RawConnection, topic: str, partitions: list[int], batch: bytes) -> list[int]:
    """The partitions that took a record."""
    taken = []
    for start in range(0, len(partitions), IN_FLIGHT):
        asked = partitions[start : start + IN_FLIGHT]
        for partition in asked:
            connection.send_produce(topic, partition, batch)
        taken += [partition for partition in asked if connection.receive_produce()[0] == 0]
    return taken


def _row(what: str, value: float, unit: str, limit: float | None, digits: int = 2) -> Row:
    budget, met = ("–", True) if limit is None else (f"≤ {limit:g} {unit}", value <= limit)
    return Row(what=what, measured=f"{value:,.{digits}f} {unit}", budget=budget, met=met)


def measure(system: str, directory: Path, partitions: int) -> list[Row]:
    with BrokerCluster(SYSTEMS[system], directory, overrides=SETTINGS) as cluster:
        scale = Scale(cluster, partitions)
        name = f"{scale.partitions:,} partitions × 3"
        created_s = scale.create()
        time.sleep(3)
        idle = scale.idle_share()
        controller = cluster.active_controller()
        other = next(node for node in cluster.nodes if node.node_id != controller)
        served_s, whole_s, cpu_s = scale.restart(other)
        time.sleep(1)
        lost, seconds = scale.fail_over()
        rss = max(node.usage().rss_bytes for node in cluster.running)
    return [
        _row(f"{name}: created and in sync", created_s, "s", None),
        _row(f"{name}: idle CPU of the busiest node", idle * 100, "%", 5),
        _row(f"{name}: restart of a node to serving", served_s, "s", 10),
        _row(f"{name}: restart of a node to all replicas in sync", whole_s, "s", 10),
        _row(f"{name}: CPU of that node until then", cpu_s, "s", None),
        _row(f"failover of {lost:,} leaders, after detection", seconds, "s", 2),
        _row(f"{name}: RSS of the largest node", rss / MIB, "MiB", None, 0),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description="Many partitions on three nodes.")
    parser.add_argument("--system", default="millbeck", choices=list(SYSTEMS), help="another system writes no docs")
    parser.add_argument("--partitions", type=int, default=2000, help="another number writes no docs")
    parser.add_argument("--simulated", type=int, nargs="*", default=[1000, 10_000], help="partitions in the simulator")
    parser.add_argument("--simulator-only", action="store_true", help="writes no docs")
    chosen = parser.parse_args()
    lines = ["| what | measured | budget | met |", "|---|---|---|---|"]
    rows: list[Row] = []
    directory = machine.scratch_directory("scale-")
    try:
        if not chosen.simulator_only:
            rows += measure(chosen.system, directory, chosen.partitions)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    for row in rows:
        print(row, flush=True)
    if chosen.system == "millbeck" and chosen.simulated:
        rows += simulated_rows(chosen.simulated)
    lines += [f"| {row.what} | {row.measured} | {row.budget} | {'yes' if row.met else '**no**'} |" for row in rows]
    print("\n".join(lines))
    is_whole = chosen.partitions == 2000 and len(chosen.simulated) > 1 and not chosen.simulator_only
    if chosen.system == "millbeck" and is_whole:
        write_section("scale", [*stamp(machine.facts(False)), *lines])
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    sys.exit(main())
