"""The steps of a cell on one system: create a topic, produce, consume, time single records, delete the topic, sync."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from bench import raw
from bench.cells import Cell
from bench.stolen import least_disturbed
from bench.systems import Node
from bench.worker import Load, run_load

PARTITIONS = 4
LATENCY_RATE = 1000
DELETE_TIMEOUT_S = 20
GIGA = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """A throughput measurement in one direction. Bytes are record values before compression."""

    megabytes_per_second: float
    broker_cpu_per_gigabyte: float
    broker_busy: float
    client_busy: float

    @property
    def client_bound(self) -> bool:
        return self.client_busy >= 0.9 > self.broker_busy


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """What one round of one cell gave on one system; what was produced is consumed several times."""

    produce: Transfer
    consumes: tuple[Transfer, ...]
    produce_p50_ms: float | None
    produce_p99_ms: float | None
    end_to_end_p50_ms: float | None
    end_to_end_p99_ms: float | None
    rss_bytes: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A topic that a measurement wrote and that others read."""

    topic: str
    records: int


def transfer(result: dict[str, Any]) -> Transfer:
    seconds = result["seconds"]
    return Transfer(
        megabytes_per_second=result["bytes"] / 1e6 / seconds,
        broker_cpu_per_gigabyte=result["broker_cpu_seconds"] / (result["bytes"] / GIGA),
        broker_busy=result["broker_cpu_seconds"] / seconds,
        client_busy=result["client_cpu_seconds"] / seconds,
    )


class Bench:
    """Runs cells against one node from the client's core."""

    topics = "bench"
    """What the names of its topics begin with: two benches may share a node."""

    def __init__(self, node: Node, *, client_core: int | None) -> None:
        self.node = node
        self.client_core = client_core
        self._admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        self._count = 0

    def new_topic(self, partitions: int = PARTITIONS) -> str:
        self._count += 1
        topic = f"{self.topics}-{self._count}"
        self._admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
        raw.wait_until_led(self.node.bootstrap, topic, partitions)
        return topic

    def delete_topic(self, topic: str) -> None:
        """Delete, wait until the files are gone, and sync, so that the next cell finds a quiet disk."""
        self._admin.delete_topics([topic])[topic].result(30)
        deadline_s = time.monotonic() + DELETE_TIMEOUT_S
        while list(self.node.data.glob(f"{topic}-*")) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        self.sync_disk()

    def sync_disk(self) -> None:
        """Let what was written reach the disk."""
        os.sync()

    def arguments(self, cell: Cell, topic: str) -> dict[str, Any]:
        """What every load process of this bench is told."""
        return asdict(cell) | {
            "core": self.client_core,
            "bootstrap": self.node.bootstrap,
            "topic": topic,
            "broker_pid": self.node.pid,
        }

    def produce(self, cell: Cell, total_bytes: int) -> tuple[Filled, Transfer]:
        """Into a new topic."""
        return least_disturbed(
            lambda: self._produce_once(cell, total_bytes), lambda other: self.delete_topic(other[0].topic)
        )

    def _produce_once(self, cell: Cell, total_bytes: int) -> tuple[Filled, Transfer]:
        topic = self.new_topic()
        produced = run_load("produce", **self.arguments(cell, topic), total_bytes=total_bytes)
        return Filled(topic=topic, records=produced["records"]), transfer(produced)

    def consume(self, cell: Cell, filled: Filled) -> Transfer:
        arguments = self.arguments(cell, filled.topic)
        return least_disturbed(lambda: transfer(run_load("consume", **arguments, records=filled.records)))

    def latency(self, cell: Cell, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
        """(produce, end to end) of single records at a fixed rate."""
        return least_disturbed(lambda: self._latency_once(cell, seconds))

    def _latency_once(self, cell: Cell, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
        topic = self.new_topic(partitions=1)
        common = self.arguments(cell, topic) | {"rate": LATENCY_RATE, "seconds": seconds}
        follower = Load("tail", **common)
        try:
            follower.wait_until_ready()
            produced = run_load("paced_produce", **common)
            followed = follower.result()
        finally:
            follower.stop()
        self.delete_topic(topic)
        return produced, followed

    def warm_up(self, cells: tuple[Cell, ...], total_bytes: int) -> None:
        """Both directions of every setting once, uncounted: compiled code, warm caches, a grown heap."""
        for cell in cells:
            filled, _ = self.produce(cell, total_bytes)
            self.consume(cell, filled)
            self.delete_topic(filled.topic)
