"""`python -m bench.share`: records through a share group with Java's own perf tool, millbeck beside Apache Kafka.

A topic of four partitions is filled; ``kafka-share-consumer-perf-test`` then reads it as a share group that begins at
the beginning, with one consumer and with several. Each system has the machine for itself while it is measured, and they
take turns. What counts is the time between the tool's first and last record: joining the group is no part of it.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.systems import SYSTEMS, Node
from tools import peers

PARTITIONS = 4
RECORD_BYTES = 100
TOPIC = "shared"
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
_JAVA = ("java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp")


def _tool(name: str, *arguments: str) -> str:
    command = [*_JAVA, f"{peers.peer_path('kafka')}/*", name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stdout}{done.stderr}")
    return done.stdout


def _fill(node: Node, record_count: int) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
    producer = Producer(
        {"bootstrap.servers": node.bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 2_000_000}
    )
    value = b"x" * RECORD_BYTES
    for number in range(record_count):
        producer.produce(TOPIC, value, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("not everything was produced")


def _begin_at_the_beginning(node: Node, group: str) -> None:
    _tool(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", node.bootstrap, "--alter", "--entity-type", "groups", "--entity-name", group),
        *("--add-config", "share.auto.offset.reset=earliest"),
    )


def _records_per_second(node: Node, group: str, record_count: int, consumers: int) -> tuple[float, float]:
    """What the tool says, and what the clock on the wall says, start of the JVM included."""
    started = time.monotonic()
    printed = _tool(
        "org.apache.kafka.tools.ShareConsumerPerformance",
        *("--bootstrap-server", node.bootstrap, "--topic", TOPIC, "--group", group),
        *("--num-records", str(record_count), "--threads", str(consumers), "--hide-header", "--timeout", "30000"),
    )
    seconds = time.monotonic() - started
    row = [line for line in printed.splitlines() if line.count(",") >= 5][-1].split(",")
    # start, end, MB, MB/s, records/s, records, ...
    return float(row[4]), record_count / seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.share", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--consumers", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--system", action="append", choices=sorted(SYSTEMS))
    chosen = parser.parse_args()
    systems = chosen.system or ["millbeck", "apache-kafka"]
    rates: dict[tuple[str, int], list[float]] = {}
    for turn in range(chosen.rounds):
        for name in systems:
            directory = Path(tempfile.mkdtemp(prefix="bench-share-"))
            try:
                with SYSTEMS[name](directory, overrides=SETTINGS) as node:
                    _fill(node, chosen.records)
                    for consumers in chosen.consumers:
                        group = f"perf-{consumers}"
                        _begin_at_the_beginning(node, group)
                        told, whole = _records_per_second(node, group, chosen.records, consumers)
                        rates.setdefault((name, consumers), []).append(told)
                        print(f"{turn} {name} {consumers} consumers: {told:,.0f} records/s ({whole:,.0f} with the JVM)")
            finally:
                shutil.rmtree(directory, ignore_errors=True)
    for (name, consumers), found in rates.items():
        print(f"{name:14} {consumers:3} consumers: median {statistics.median(found):>12,.0f} records/s of {len(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
