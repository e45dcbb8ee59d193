"""What is measured of one cluster: produce, failover, and a broker that returns with an empty disk."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from bench import raw
from bench.cells import Cell
from bench.measure import DELETE_TIMEOUT_S, GIGA, LATENCY_RATE, Transfer, transfer
from bench.systems.cluster import BrokerCluster, wait_for
from bench.systems.node import Node
from bench.worker import run_load

PARTITIONS = 6
FAILOVER_PARTITIONS = 12
SETTINGS = {"min.insync.replicas": "2"}
FILLING = Cell(record_bytes=1000, batch_bytes=1_000_000, acks="all", codec="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """One round of one cell: throughput, then single records at a fixed rate."""

    transfer: Transfer
    p50_ms: float | None = None
    p99_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failover:
    """Seconds from the kill to the first acknowledged record of each partition the victim led, without the session."""

    was_controller: bool
    median_seconds: float
    last_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """A broker came back: seconds from its start to all replicas in sync, and what all brokers used meanwhile."""

    size_bytes: int
    seconds: float
    cpu_seconds: float

    @property
    def cpu_per_gigabyte(self) -> float:
        return self.cpu_seconds / (self.size_bytes / GIGA)


class ClusterBench:
    """Measures one cluster; every measurement has topics of its own, gone afterwards."""

    def __init__(self, cluster: BrokerCluster, *, client_core: int | None = None) -> None:
        self.cluster = cluster
        self.client_core = client_core
        self._count = 0

    @contextmanager
    def topic(self, partitions: int) -> Iterator[str]:
        self._count += 1
        name = f"bench-{self._count}"
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(name, partitions, 3, config=SETTINGS)])[name].result(60)
        self.cluster.wait_until_in_sync(name, partitions)
        yield name
        admin.delete_topics([name])[name].result(60)
        deadline_s = time.monotonic() + DELETE_TIMEOUT_S
        while any(list(node.data.glob(f"{name}-*")) for node in self.cluster.nodes) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        os.sync()

    def _arguments(self, cell: Cell, topic: str) -> dict[str, Any]:
        return asdict(cell) | {
            "core": self.client_core,
            "bootstrap": self.cluster.bootstrap,
            "topic": topic,
            "broker_pid": self.cluster.pids,
        }

    def produce(self, cell: Cell, *, total_bytes: int, latency_seconds: float) -> Produced:
        with self.topic(PARTITIONS) as topic:
            moved = transfer(run_load("produce", **self._arguments(cell, topic), total_bytes=total_bytes))
        paced: dict[str, Any] = {}
        if latency_seconds:
            with self.topic(1) as topic:
                arguments = self._arguments(cell, topic) | {"rate": LATENCY_RATE, "seconds": latency_seconds}
                paced = run_load("paced_produce", **arguments)
        return Produced(transfer=moved, p50_ms=paced.get("p50_ms"), p99_ms=paced.get("p99_ms"))

    # A leader is killed.

    def failover(self, *, session_seconds: float, of_controller: bool) -> Failover:
        """Kill a broker that leads, and is the active controller or is not; then let it come back."""
        with self.topic(FAILOVER_PARTITIONS) as topic:
            controller = self.cluster.active_controller()
            victim = next(node for node in self.cluster.nodes if (node.node_id == controller) is of_controller)
            led = [part for part, state in self.cluster.states(topic).items() if state.leader == victim.node_id]
            if not led:
                raise RuntimeError(f"{victim.name} {victim.node_id} leads nothing")
            # Somewhere between two heartbeats, at another point each time.
            time.sleep(0.3 + 0.37 * (self._count % 5))
            killed_s = time.monotonic()
            victim.kill()
            accepted = self._accepted_again(topic, led, deadline_s=killed_s + session_seconds + 60)
            victim.start()
            self.cluster.wait_until_in_sync(topic, FAILOVER_PARTITIONS)
        after = sorted(moment_s - killed_s - session_seconds for moment_s in accepted.values())
        return Failover(was_controller=of_controller, median_seconds=after[len(after) // 2], last_seconds=after[-1])

    def _accepted_again(self, topic: str, partitions: list[int], *, deadline_s: float) -> dict[int, float]:
        """When each partition first took a record again, asked as fast as its metadata changes."""
        batch = raw.build_batch([b"first"])
        asked = [raw.RawConnection(node.bootstrap) for node in self.cluster.running]
        by_id = {node.node_id: connection for node, connection in zip(self.cluster.running, asked, strict=True)}
        accepted: dict[int, float] = {}
        try:
            while len(accepted) < len(partitions):
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"{len(accepted)} of {len(partitions)} partitions took a record again")
                leaders = asked[0].partition_leaders(topic)
                for partition in partitions:
                    connection = by_id.get(leaders.get(partition, -1))
                    if connection is None or partition in accepted:
                        continue
                    connection.send_produce(topic, partition, batch)
                    if connection.receive_produce()[0] == 0:
                        accepted[partition] = time.monotonic()
                time.sleep(0.003)
        finally:
            for connection in asked:
                connection.close()
        return accepted

    # A broker returns.

    def returns(self, *, total_bytes: int) -> tuple[Return, Return]:
        """(with its data, with an empty disk), a broker that is not the active controller."""
        with self.topic(PARTITIONS) as topic:
            run_load("produce", **self._arguments(FILLING, topic), total_bytes=total_bytes)
            os.sync()
            with_data = self._return(topic, total_bytes, emptied=False)
            return with_data, self._return(topic, total_bytes, emptied=True)

    def _return(self, topic: str, total_bytes: int, *, emptied: bool) -> Return:
        controller = self.cluster.active_controller()
        node = next(node for node in reversed(self.cluster.nodes) if node.node_id != controller)
        node.stop()
        others = self.cluster.running
        wait_for(
            lambda: not any(node.node_id in state.isr for state in self.cluster.states(topic).values()),
            deadline_s=time.monotonic() + 60,
            what=f"{node.name} {node.node_id} is still in sync",
        )
        if emptied:
            self.cluster.empty_disk(node)
            node.prepare()
        before_s = sum(other.usage().cpu_seconds for other in others)
        started_s = time.monotonic()
        node.start(wait=False)
        self._wait_in_sync(topic, others)
        seconds = time.monotonic() - started_s
        used_s = sum(other.usage().cpu_seconds for other in others) - before_s + node.usage().cpu_seconds
        node.wait_until_serving()
        return Return(size_bytes=total_bytes, seconds=seconds, cpu_seconds=used_s)

    def _wait_in_sync(self, topic: str, asked: list[Node]) -> None:
        wait_for(
            lambda: all(len(state.isr) == 3 for state in self.cluster.states(topic, asked[0]).values()),
            deadline_s=time.monotonic() + 600,
            what=f"{topic} is not in sync again",
        )
