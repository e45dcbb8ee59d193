"""`python -m bench.turns`: how long the event loop is held by metadata changes and scrapes, with 10,000 partitions.

One node creates 10,000 partitions, is scraped, has settings changed that count for every topic, and deletes them all.
Then three nodes share 10,000 partitions of which one, not the active controller, leads half; it is killed, fenced, and
comes back. Every turn of every loop is timed (`bench.turn_recorder`); what counts is the processor time of the loop's
own thread, since by the wall a turn also waits for whatever else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from bench import machine
from bench.report import stamp, write_section
from bench.systems.cluster import BrokerCluster, wait_for
from bench.systems.millbeck import Millbeck
from bench.systems.node import Node
from tools.peers import ROOT

PARTITIONS = 10_000
SMALL_TOPIC_PARTITIONS = 100
TOPIC_PARTITIONS = 500
BUDGET_MS = 10.0
SESSION_MS = 3000
SETTLE_SECONDS = 3.0
SCRAPES = 3
EDGES_MS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
WAIT_SECONDS = 180.0
FILTER = "?name[]=kafka_log_log_size"


class TimedMillbeck(Millbeck):
    """A node whose turns are timed from its first one on."""

    @property
    def report_path(self) -> Path:
        return self.directory / "turns.json"

    def command(self) -> list[str]:
        arguments = ["server", "--config", str(self.config_path)]
        return [sys.executable, "-m", "bench.turn_recorder", str(self.report_path), *arguments]

    def environment(self) -> dict[str, str]:
        return super().environment() | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The turns of one node while something was done."""

    what: str
    cpu_ms: list[float]
    wall_ms: list[float]

    @property
    def longest_ms(self) -> float:
        return max(self.cpu_ms, default=0.0)

    @property
    def is_met(self) -> bool:
        return self.longest_ms <= BUDGET_MS

    @property
    def histogram(self) -> str:
        """Turns below each edge and at or above the last one."""
        counts = [0] * (len(EDGES_MS) + 1)
        for cpu in self.cpu_ms:
            counts[sum(cpu >= edge for edge in EDGES_MS)] += 1
        return " ".join(str(count) for count in counts)

    def cells(self) -> str:
        return (
            f"| {self.what} | {len(self.cpu_ms):,} | {self.longest_ms:.1f} | {_quantile(self.cpu_ms, 0.999):.1f} "
            f"| {_quantile(self.wall_ms, 0.999):.1f} | {self.histogram} | {'yes' if self.is_met else '**no**'} |"
        )


HEADER = [
    "| what | turns | longest, CPU ms | p99.9 CPU | p99.9 wall | turns by CPU ms "
    f"(< {', '.join(f'{edge:g}' for edge in EDGES_MS)}, more) | ≤ {BUDGET_MS:g} ms |",
    "|---|---|---|---|---|---|---|",
]


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else 0.0


class Measuring:
    """Collects the rows; `stacks` prints where long turns were."""

    def __init__(self, *, stacks: bool) -> None:
        self.rows: list[Row] = []
        self._stacks = stacks

    def forget(self, *nodes: Node) -> None:
        """What they did so far counts for nothing."""
        for node in nodes:
            _turns_of(node)

    def take(self, what: str, nodes: dict[str, Node], is_done: Callable[[], bool] = lambda: True) -> None:
        """What the nodes do until it is done, and a moment longer.

        They are asked about that now and then, and the turns in which they answer are left out: a client's question
        about thousands of partitions is neither a change of the metadata nor a scrape.
        """
        taken: dict[str, list[dict]] = {role: [] for role in nodes}  # type: ignore[type-arg]
        deadline_s = time.monotonic() + WAIT_SECONDS
        done = False
        while not done:
            time.sleep(SETTLE_SECONDS)
            for role, node in nodes.items():
                taken[role].append(_turns_of(node))
            done = is_done()
            self.forget(*nodes.values())
            if time.monotonic() > deadline_s:
                raise TimeoutError(what)
        for role, reports in taken.items():
            row = Row(
                what=f"{what}{role}",
                cpu_ms=[each for report in reports for each in report["cpu_ms"]],
                wall_ms=[each for report in reports for each in report["wall_ms"]],
            )
            self.rows.append(row)
            print(row.cells(), flush=True)
            if self._stacks:
                _print_stacks([long for report in reports for long in report["long"]])


def _print_stacks(long: list) -> None:  # type: ignore[type-arg]
    for cpu_ms, stacks in sorted(long, reverse=True)[:5]:
        print(f"    a turn of {cpu_ms:.1f} ms:")
        for stack, count in stacks[:8]:
            print(f"      {count:4d} {' < '.join(stack.split(' < ')[:10])}")


def _turns_of(node: Node) -> dict:  # type: ignore[type-arg]
    assert isinstance(node, TimedMillbeck)
    node.report_path.unlink(missing_ok=True)
    os.kill(node.pid, signal.SIGUSR2)
    wait_for(node.report_path.exists, deadline_s=time.monotonic() + 60, what="the node reports no turns")
    report: dict = json.loads(node.report_path.read_text())  # type: ignore[type-arg]
    return report


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "topic.metadata.refresh.interval.ms": -1})


def _finish(futures: dict) -> None:  # type: ignore[type-arg]
    for future in futures.values():
        future.result(WAIT_SECONDS)


def _scrape(node: Node, query: str = "") -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{node.metrics_port}/metrics{query}", timeout=60) as page:
        return len(page.read())


def one_node(measuring: Measuring, directory: Path, partitions: int) -> None:
    node = TimedMillbeck(directory / "one", overrides={"num.partitions": "1"})
    with node:
        admin = _admin(node.bootstrap)
        time.sleep(1)
        measuring.forget(node)
        half = partitions // 2
        # Timeouts of the client are its own; the node takes what it takes.
        _finish(admin.create_topics([NewTopic("large", half, 1)], operation_timeout=60, request_timeout=120))
        measuring.take(f"create a topic of {half:,} partitions", {"": node})
        small = [f"small-{number}" for number in range(half // SMALL_TOPIC_PARTITIONS)]
        _finish(admin.create_topics([NewTopic(name, SMALL_TOPIC_PARTITIONS, 1) for name in small], request_timeout=120))
        measuring.take(f"create {len(small)} topics of {SMALL_TOPIC_PARTITIONS} in one request", {"": node})
        size = 0
        for _ in range(SCRAPES):
            size = _scrape(node)
            time.sleep(1)
        measuring.take(f"scrape of {partitions:,} partitions, {size / 1e6:.1f} MB", {"": node})
        with ThreadPoolExecutor(SCRAPES) as pool:
            sizes = list(pool.map(lambda _: _scrape(node), range(SCRAPES)))
        measuring.take(f"{len(sizes)} scrapes at the same time", {"": node})
        size = _scrape(node, FILTER)
        measuring.take(f"scrape of one metric of them, {size / 1e6:.1f} MB", {"": node})
        retention = ConfigEntry("log.retention.ms", "700000000", incremental_operation=AlterConfigOpType.SET)
        everywhere = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[retention])
        _finish(admin.incremental_alter_configs([everywhere], request_timeout=120))
        measuring.take("change a default of all topics", {"": node})
        _finish(admin.create_partitions([NewPartitions("large", half + half // 5)], request_timeout=120))
        measuring.take(f"add {half // 5:,} partitions to a topic", {"": node})
        _finish(admin.delete_topics(["large", *small], request_timeout=120))
        measuring.take(f"delete {len(small) + 1} topics, {partitions + half // 5:,} partitions", {"": node})
        # Files go a minute later, and an idle node collects garbage.
        time.sleep(65)
        measuring.take("a minute after that", {"": node})


def three_nodes(measuring: Measuring, directory: Path, partitions: int) -> None:
    settings = {"broker.session.timeout.ms": str(SESSION_MS), "broker.heartbeat.interval.ms": "500"}
    with BrokerCluster(TimedMillbeck, directory / "three", overrides=settings) as cluster:
        admin = _admin(cluster.bootstrap)
        controller_id = cluster.active_controller()
        victim_id, other_id = [node.node_id for node in cluster.nodes if node.node_id != controller_id]
        controller, victim, other = (cluster.node(each) for each in (controller_id, victim_id, other_id))
        count = partitions // 2 // TOPIC_PARTITIONS
        led = {
            f"victims-{number}": [[victim_id, controller_id, other_id]] * TOPIC_PARTITIONS for number in range(count)
        }
        rest = {
            f"others-{number}": [[controller_id, other_id, victim_id], [other_id, victim_id, controller_id]]
            * (TOPIC_PARTITIONS // 2)
            for number in range(count)
        }
        topics = led | rest
        roles: dict[str, Node] = {", on the controller": controller, ", on another broker": other}
        everybody = roles | {", on the third": victim}

        def are_in_sync() -> bool:
            return all(
                len(state.isr) == len(state.replicas)
                for name in topics
                for state in cluster.states(name, controller).values()
            )

        def are_led_elsewhere() -> bool:
            return all(
                state.leader not in (-1, victim_id)
                for node in cluster.running
                for name in topics
                for state in cluster.states(name, node).values()
            )

        time.sleep(2)
        measuring.forget(*cluster.nodes)
        for name, assignment in topics.items():
            new = NewTopic(name, len(assignment), replica_assignment=assignment)
            _finish(admin.create_topics([new], request_timeout=120))
        measuring.take(f"create {len(topics)} topics of {TOPIC_PARTITIONS} × 3", everybody, are_in_sync)
        for node in everybody.values():
            _scrape(node)
        measuring.take("scrape", everybody)
        victim.kill()
        measuring.take(f"a broker that leads {partitions // 2:,} is fenced", roles, are_led_elsewhere)
        victim.start()
        measuring.forget(*everybody.values())
        measuring.take("it is back and catches up", everybody, are_in_sync)
        _finish(admin.delete_topics(list(topics), request_timeout=120))
        measuring.take(f"delete {partitions:,} × 3", everybody)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.turns", description="Turns of the event loop.")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="another number writes no docs")
    parser.add_argument("--only", choices=["one", "three"], help="one node, or three; writes no docs")
    parser.add_argument("--stacks", action="store_true", help="show where long turns were; writes no docs")
    chosen = parser.parse_args()
    if chosen.stacks:
        os.environ["BENCH_TURN_STACKS"] = "1"
    measuring = Measuring(stacks=chosen.stacks)
    directory = machine.scratch_directory("turns-")
    print("\n".join(HEADER), flush=True)
    try:
        if chosen.only != "three":
            one_node(measuring, directory, chosen.partitions)
        if chosen.only != "one":
            three_nodes(measuring, directory, chosen.partitions)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    lines = [*HEADER, *(row.cells() for row in measuring.rows)]
    if chosen.partitions == PARTITIONS and not chosen.only and not chosen.stacks:
        write_section("turns", [*stamp(machine.facts(False)), *lines])
    return 0 if all(row.is_met for row in measuring.rows) else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    sys.exit(main())
