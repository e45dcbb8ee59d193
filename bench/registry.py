"""`python -m bench.registry`: the schema registry with 10,000 subjects of five versions, 500 bytes each.

How long it takes to start and how much memory it has; GET by id at 1,000 requests a second, each timed from when it was
due; new versions, one after the other and four at a time. The registry and the load have a core each; the broker shares
the load's.

With `--validation`: what a producer gets on a topic whose brokers look at schema ids, and on one where they do not, in
turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench import machine
from bench.report import stamp, write_section
from bench.systems import SYSTEMS, Node
from bench.systems.millbeck import cli_environment

SUBJECTS = 10_000
VERSIONS = 5
TEXT_BYTES = 500
RATE = 1000
SECONDS = 20.0
CONNECTIONS = 16
REGISTRATIONS = 400
VALIDATED = {"confluent.value.schema.validation": "true"}
RECORDS = 1_000_000
ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    start_s: float
    rss_mib: float
    rss_after_mib: float
    get_ms: list[float]
    register_ms: list[float]
    register_four_ms: list[float]


def schema_text(subject: int, version: int) -> str:
    fields = [{"name": f"f{number}", "type": "int", "default": number} for number in range(version)]
    text = json.dumps({"type": "record", "name": f"R{subject}", "doc": "", "fields": fields}, separators=(",", ":"))
    return text.replace('"doc":""', f'"doc":"{"x" * (TEXT_BYTES - len(text))}"')


def compact(members: dict[str, Any]) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode()


def fill(bootstrap: str) -> None:
    """Write the records of the schemas, as a registry would."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic("_schemas", 1, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([topic])["_schemas"].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000})
    for number in range(SUBJECTS * VERSIONS):
        subject, version = number // VERSIONS, number % VERSIONS + 1
        key = {"keytype": "SCHEMA", "subject": f"topic-{subject}-value", "version": version, "magic": 1}
        value = {"subject": f"topic-{subject}-value", "version": version, "id": number + 1}
        value |= {"schema": schema_text(subject, version), "deleted": False}
        producer.produce("_schemas", key=compact(key), value=compact(value))
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


class Registry:
    """A registry in a process of its own, started when it is made."""

    def __init__(self, bootstrap: str, core: int | None) -> None:
        settings = {
            "listeners": "http://127.0.0.1:0",
            "kafkastore.bootstrap.servers": bootstrap,
            "kafkastore.topic.replication.factor": "1",
        }
        options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "millbeck.cli.main", "registry", "start", "--stops-with-input", *options]
        before = time.monotonic()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=cli_environment()
        )
        if core is not None:
            os.sched_setaffinity(self.process.pid, {core})
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on http://"), line
        self.url = line.split()[-1]
        with urllib.request.urlopen(f"{self.url}/subjects/topic-7-value/versions/latest", timeout=30) as answer:
            assert json.load(answer)["version"] == VERSIONS
        self.start_s = time.monotonic() - before

    @property
    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


class Connection:
    """One keep-alive connection, for one request at a time."""

    async def open(self, url: str) -> Connection:
        host, port = url.removeprefix("http://").split(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))
        return self

    async def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: r\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        )
        self._writer.write(head.encode() + b"\r\n" + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        lines = answer.decode("latin-1").lower().split("\r\n")
        size = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length"))
        return int(lines[0].split()[1]), await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.close()


async def gets(url: str) -> list[float]:
    """Requests by id at a constant rate, for ids all over; milliseconds from when each was due."""
    connections = [await Connection().open(url) for _ in range(CONNECTIONS)]
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    taken: list[float] = []

    async def run(index: int) -> None:
        for number in range(index, int(RATE * SECONDS), CONNECTIONS):
            due_s = start_s + number / RATE
            await asyncio.sleep(max(0.0, due_s - loop.time()))
            schema_id = 1 + number * 7919 % (SUBJECTS * VERSIONS)
            status, _ = await connections[index].request("GET", f"/schemas/ids/{schema_id}")
            assert status == 200
            taken.append((loop.time() - due_s) * 1000)

    await asyncio.gather(*(run(index) for index in range(CONNECTIONS)))
    for each in connections:
        each.close()
    return taken


async def registrations(url: str, first: int, at_once: int) -> list[float]:
    """New versions of subjects, each with five compatible ones before it."""
    connections = [await Connection().open(url) for _ in range(at_once)]
    taken: list[float] = []

    async def run(index: int) -> None:
        for number in range(first + index, first + REGISTRATIONS, at_once):
            body = json.dumps({"schema": schema_text(number, VERSIONS + 1)}).encode()
            before = time.monotonic()
            path = f"/subjects/topic-{number}-value/versions"
            status, answer = await connections[index].request("POST", path, body)
            assert status == 200, answer
            taken.append((time.monotonic() - before) * 1000)

    await asyncio.gather(*(run(index) for index in range(at_once)))
    for each in connections:
        each.close()
    return taken


def measure(directory: Path) -> Measured:
    registry_core, load_core = machine.cores()
    if load_core is not None:
        os.sched_setaffinity(0, {load_core})
    with SYSTEMS["millbeck"](directory, core=load_core) as node:
        fill(node.bootstrap)
        registry = Registry(node.bootstrap, registry_core)
        try:
            rss_mib = registry.rss_mib
            get_ms = asyncio.run(gets(registry.url))
            one = asyncio.run(registrations(registry.url, 0, 1))
            four = asyncio.run(registrations(registry.url, REGISTRATIONS, 4))
            return Measured(
                start_s=registry.start_s,
                rss_mib=rss_mib,
                rss_after_mib=registry.rss_mib,
                get_ms=get_ms,
                register_ms=one,
                register_four_ms=four,
            )
        finally:
            registry.close()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def table(found: Measured) -> list[str]:
    def row(what: str, values: list[float], goal: str) -> str:
        return f"| {what} | {percentile(values, 0.5):.1f} / {percentile(values, 0.99):.1f} ms | {goal} |"

    return [
        "| | measured | goal |",
        "|---|---|---|",
        f"| start, to the first answer | {found.start_s:.1f} s | 2 s |",
        f"| memory after the start, and in the end | {found.rss_mib:.0f}, {found.rss_after_mib:.0f} MiB | 150 MiB |",
        row(f"GET by id at {RATE:,}/s, p50 / p99", found.get_ms, "p99 5 ms"),
        row("register, one at a time, p50 / p99", found.register_ms, "p99 50 ms"),
        row("register, four at a time, p50 / p99", found.register_four_ms, "p99 50 ms"),
    ]


# validation by brokers


def produced(node: Node, topic: str) -> tuple[float, float]:
    """Seconds that a producer took for all records, and seconds of the broker's processor."""
    producer = Producer(
        {"bootstrap.servers": node.bootstrap, "linger.ms": 5, "queue.buffering.max.messages": RECORDS, "acks": "1"}
    )
    value = b"\0" + (7).to_bytes(4, "big") + b"x" * 95
    before, used = time.monotonic(), _cpu_seconds(node)
    for number in range(RECORDS):
        producer.produce(topic, value)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
    return time.monotonic() - before, _cpu_seconds(node) - used


def _cpu_seconds(node: Node) -> float:
    assert node.process is not None
    fields = Path(f"/proc/{node.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def validation(directory: Path) -> dict[str, Any]:
    broker_core, load_core = machine.cores()
    if load_core is not None:
        os.sched_setaffinity(0, {load_core})
    found: dict[str, list[tuple[float, float]]] = {"off": [], "on": []}
    with SYSTEMS["millbeck"](directory, core=broker_core) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        topics = [
            NewTopic("_schemas", 1, 1, config={"cleanup.policy": "compact"}),
            NewTopic("off", 1, 1),
            NewTopic("on", 1, 1, config=VALIDATED),
        ]
        for future in admin.create_topics(topics).values():
            future.result(30)
        producer = Producer({"bootstrap.servers": node.bootstrap})
        key = {"keytype": "SCHEMA", "subject": "on-value", "version": 1, "magic": 1}
        value = {"subject": "on-value", "version": 1, "id": 7, "schema": '"bytes"', "deleted": False}
        producer.produce("_schemas", key=compact(key), value=compact(value))
        producer.flush(30)
        for number in range(ROUNDS + 1):
            for topic in ("off", "on") if number % 2 else ("on", "off"):
                outcome = produced(node, topic)
                if number:
                    found[topic].append(outcome)
    seconds = {topic: median(each[0] for each in rounds) for topic, rounds in found.items()}
    processor = {topic: median(each[1] for each in rounds) for topic, rounds in found.items()}
    return {"seconds": seconds, "broker CPU": processor, "throughput on / off": seconds["off"] / seconds["on"]}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.registry", description="The schema registry's budgets.")
    parser.add_argument("--validation", action="store_true", help="validation of schema ids by brokers instead")
    parser.add_argument("--print-only", action="store_true", help="leave docs/benchmarks.md as it is")
    chosen = parser.parse_args()
    directory = machine.scratch_directory("bench-registry-")
    try:
        if chosen.validation:
            print(json.dumps(validation(directory), indent=2))
            return 0
        lines = table(measure(directory))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("\n".join(lines))
    if not chosen.print_only:
        write_section("registry", [*stamp(machine.facts(False)), *lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
