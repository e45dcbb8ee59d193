"""`python -m bench.compaction`: the same data compacted by each system, per second and per core-second.

Topics are filled while their policy is delete; turning it to compact starts the cleaner, and its checkpoint says when
it is done. Its CPU: of Apache Kafka, what the process used beyond what it uses when idle; of millbeck, what the worker
process used (what the broker itself added is shown beside it). Then produce latency: a producer at 1,000 records/s,
quiet and while more topics of the same kind are compacted. Goals: at least level with Kafka per core-second, and a p99
of at most 1.5 times the quiet one + 2 ms.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bench import machine
from bench.cells import SMALL_BATCH, Cell
from bench.measure import LATENCY_RATE, Bench
from bench.report import stamp, write_section
from bench.systems import SYSTEMS, Node
from bench.systems.node import process_usage
from bench.worker import Load, run_load

MEGA = 1_000_000
VALUE_BYTES = 200
PACED = Cell(record_bytes=1000, batch_bytes=SMALL_BATCH, acks="all", codec="none")
OVERRIDES = {"log.cleaner.backoff.ms": "100", "log.segment.bytes": str(16 << 20)}
PATIENCE_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    dirty_bytes: int
    left_bytes: int
    wall_seconds: float
    cleaner_cpu_seconds: float
    broker_cpu_seconds: float
    quiet_p99_ms: float
    busy_p99_ms: float
    busy_share: float
    """Of the time in which latency was measured, how much was spent compacting."""

    @property
    def megabytes_per_core_second(self) -> float:
        return self.dirty_bytes / MEGA / self.cleaner_cpu_seconds if self.cleaner_cpu_seconds else 0.0

    @property
    def allowed_p99_ms(self) -> float:
        return 1.5 * self.quiet_p99_ms + 2


class Tables:
    """Topics of one node that are filled, and then compacted."""

    def __init__(self, node: Node, *, total_bytes: int, key_count: int, codec: str) -> None:
        self.node = node
        self._total_bytes = total_bytes
        self._key_count = key_count
        self._codec = codec
        self._admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})

    def fill(self, topic: str) -> None:
        """The same records for every system: random values, keys from a fixed set, one partition."""
        self._admin.create_topics([NewTopic(topic, 1, 1, config={"min.cleanable.dirty.ratio": "0.01"})])[topic].result(
            30
        )
        settings = {"bootstrap.servers": self.node.bootstrap, "compression.type": self._codec, "linger.ms": 20}
        producer = Producer(settings | {"batch.size": 100_000, "queue.buffering.max.messages": 1_000_000})
        dice = random.Random(topic.rpartition("-")[2])
        values = [dice.randbytes(VALUE_BYTES // 2).hex().encode() for _ in range(500)]
        for number in range(self._total_bytes // VALUE_BYTES):
            key = b"key-%08d" % dice.randrange(self._key_count)
            while True:
                try:
                    producer.produce(topic, key=key, value=values[number % len(values)], partition=0)
                    break
                except BufferError:
                    producer.poll(0.05)
        if producer.flush(120):
            raise TimeoutError(f"{topic} could not be filled")

    def compact(self, topics: list[str]) -> None:
        for topic in topics:
            entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
            self._admin.incremental_alter_configs([resource])[resource].result(30)

    def sealed_bytes(self, topic: str) -> int:
        """Of all segments but the active one."""
        return sum(path.stat().st_size for path in self._logs(topic)[:-1])

    def is_compacted(self, topic: str) -> bool:
        return self._first_dirty(topic) == int(self._logs(topic)[-1].stem)

    def wait(self, topics: list[str]) -> float:
        """Until all are compacted; how long that took."""
        began = time.monotonic()
        while not all(self.is_compacted(topic) for topic in topics):
            if time.monotonic() - began > PATIENCE_S:
                raise TimeoutError(f"{self.node.name} does not compact:\n{self.node.log_tail()}")
            time.sleep(0.01)
        return time.monotonic() - began

    def _logs(self, topic: str) -> list[Path]:
        return sorted((self.node.data / f"{topic}-0").glob("*.log"))

    def _first_dirty(self, topic: str) -> int:
        try:
            lines = (self.node.data / "cleaner-offset-checkpoint").read_text().splitlines()[2:]
        except FileNotFoundError:
            return -1
        return next((int(line.split()[2]) for line in lines if line.split()[:2] == [topic, "0"]), -1)


def worker_cpu_seconds(node: Node) -> float:
    """What the node's child processes have used."""
    children = Path(f"/proc/{node.pid}/task").glob("*/children")
    pids = {int(pid) for path in children for pid in path.read_text().split()}
    return sum(process_usage(pid).cpu_seconds for pid in sorted(pids))


def idle_rate(node: Node, seconds: float) -> float:
    before = node.usage().cpu_seconds
    time.sleep(seconds)
    return (node.usage().cpu_seconds - before) / seconds


def _latency(bench: Bench, topic: str, seconds: float) -> float:
    arguments = bench.arguments(PACED, topic) | {"rate": LATENCY_RATE, "seconds": seconds}
    result: dict[str, Any] = run_load("paced_produce", **arguments)
    return float(result["p99_ms"])


def _latency_while(bench: Bench, topic: str, seconds: float, is_busy: Callable[[], bool]) -> tuple[float, float]:
    """(p99, the share of the time in which ``is_busy`` held)."""
    arguments = bench.arguments(PACED, topic) | {"rate": LATENCY_RATE, "seconds": seconds}
    load = Load("paced_produce", **arguments)
    busy = looks = 0
    while load.running:
        looks += 1
        busy += is_busy()
        time.sleep(0.05)
    return float(load.result()["p99_ms"]), busy / max(1, looks)


def measure(
    system: str, directory: Path, *, total_bytes: int, key_count: int, codec: str, seconds: float, busy_topics: int
) -> Compaction:
    broker_core, client_core = machine.cores()
    with SYSTEMS[system](directory, core=broker_core, overrides=OVERRIDES) as node:
        bench = Bench(node, client_core=client_core)
        tables = Tables(node, total_bytes=total_bytes, key_count=key_count, codec=codec)
        tables.fill("warm-0")
        tables.compact(["warm-0"])
        tables.wait(["warm-0"])
        tables.fill("table-1")
        os.sync()
        time.sleep(2)
        idle = idle_rate(node, 3)
        dirty_bytes = tables.sealed_bytes("table-1")
        broker_before, worker_before = node.usage().cpu_seconds, worker_cpu_seconds(node)
        tables.compact(["table-1"])
        wall = tables.wait(["table-1"])
        broker = node.usage().cpu_seconds - broker_before - idle * wall
        worker = worker_cpu_seconds(node) - worker_before
        left_bytes = tables.sealed_bytes("table-1")

        paced_topic = bench.new_topic(partitions=1)
        _latency(bench, paced_topic, 2)
        quiet = _latency(bench, paced_topic, seconds)
        more = [f"busy-{number}" for number in range(busy_topics)]
        for topic in more:
            tables.fill(topic)
        os.sync()
        time.sleep(2)
        tables.compact(more)
        busy_p99, share = _latency_while(
            bench, paced_topic, seconds, lambda: not all(tables.is_compacted(topic) for topic in more)
        )
        tables.wait(more)
        node.stop()
    return Compaction(
        dirty_bytes=dirty_bytes,
        left_bytes=left_bytes,
        wall_seconds=wall,
        cleaner_cpu_seconds=worker if worker else broker,
        broker_cpu_seconds=broker if worker else 0.0,
        quiet_p99_ms=quiet,
        busy_p99_ms=busy_p99,
        busy_share=share,
    )


HEAD = [
    "| system | dirty MB | left MB | wall s | MB/s | cleaner CPU s | MB per core-second | broker CPU s besides"
    " | quiet produce p99 ms | p99 ms while compacting | allowed ms | compacting |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|",
]


def _row(system: str, result: Compaction) -> str:
    return (
        f"| {system} | {result.dirty_bytes / MEGA:.0f} | {result.left_bytes / MEGA:.1f} | {result.wall_seconds:.2f}"
        f" | {result.dirty_bytes / MEGA / result.wall_seconds:.0f} | {result.cleaner_cpu_seconds:.2f}"
        f" | {result.megabytes_per_core_second:.0f} | {result.broker_cpu_seconds:.2f} | {result.quiet_p99_ms:.2f}"
        f" | {result.busy_p99_ms:.2f} | {result.allowed_p99_ms:.2f} | {result.busy_share:.0%} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compaction", description="Compaction beside Apache Kafka.")
    parser.add_argument("--only", choices=list(SYSTEMS), help="one system; writes no docs")
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--codec", default="none")
    parser.add_argument("--seconds", type=float, default=15, help="of each latency measurement")
    parser.add_argument("--busy-topics", type=int, default=4, help="compacted during the second of them")
    chosen = parser.parse_args()
    lines, rates = list(HEAD), {}
    directory = machine.scratch_directory("compaction-")
    try:
        for system in [chosen.only] if chosen.only else list(SYSTEMS):
            result = measure(
                system,
                directory / system,
                total_bytes=chosen.megabytes * MEGA,
                key_count=chosen.keys,
                codec=chosen.codec,
                seconds=chosen.seconds,
                busy_topics=chosen.busy_topics,
            )
            rates[system] = result.megabytes_per_core_second
            lines.append(_row(system, result))
            print("\n".join(lines) if len(lines) == len(HEAD) + 1 else lines[-1], flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if len(rates) == len(SYSTEMS):
        ratio = rates["millbeck"] / rates["apache-kafka"]
        lines += ["", f"Per core-second, millbeck compacts {ratio:.2f} times what Apache Kafka does."]
        print(lines[-1])
        write_section("compaction", [*stamp(machine.facts(True)), *lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
