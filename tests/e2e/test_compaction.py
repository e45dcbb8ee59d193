"""Compaction in real processes: a worker beside the node, and nothing of it left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.client.consumer import Consumer
from millbeck.client.producer import Producer
from millbeck.kernel.ids import TopicPartition
from millbeck.testing import Broker, broker

SETTINGS = {"log.cleaner.backoff.ms": "50"}
TABLE = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "min.cleanable.dirty.ratio": "0.01"}
KEYS = 50


def until(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


async def fill(bootstrap: str, count: int, start: int = 0) -> dict[bytes, bytes]:
    table: dict[bytes, bytes] = {}
    async with Producer({"bootstrap.servers": bootstrap, "linger.ms": 5}) as producer:
        for number in range(start, start + count):
            key, value = b"key-%d" % (number % KEYS), b"%d " % number * 100
            await producer.enqueue("table", value, key=key, partition=0)
            table[key] = value
        await producer.flush()
    return table


async def create(bootstrap: str) -> None:
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        (await admin.create_topics([NewTopic(name="table", configs=TABLE)])).all()


async def read(bootstrap: str) -> dict[bytes, bytes]:
    table: dict[bytes, bytes] = {}
    name = TopicPartition("table", 0)
    async with Consumer({"bootstrap.servers": bootstrap}) as consumer:
        end = (await consumer.end_offsets([name]))[name]
        consumer.assign([name])
        consumer.seek(name, 0)
        offset = 0
        while offset < end:
            for record in (await consumer.poll(timeout_s=5)).get(name, []):
                table[record.key or b""] = record.value or b""
                offset = record.offset + 1
    return table


def is_compacted(node: Broker) -> bool:
    directory = Path(node.directory)
    checkpoint = directory / "cleaner-offset-checkpoint"
    active = max(int(path.stem) for path in (directory / "table-0").glob("*.log"))
    return active > 0 and checkpoint.exists() and f"table 0 {active}\n" in checkpoint.read_text()


def workers_of(node: Broker) -> list[int]:
    tasks = Path(f"/proc/{node.process_id}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def is_alive(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_log_is_compacted_by_a_worker_that_dies_with_the_node() -> None:
    with broker(SETTINGS) as node:
        assert workers_of(node) == [], "no work, no worker"
        asyncio.run(create(node.bootstrap))
        table = asyncio.run(fill(node.bootstrap, 6000))
        until(lambda: is_compacted(node), "it is not compacted")
        assert asyncio.run(read(node.bootstrap)) == table
        (worker,) = workers_of(node)
        node.kill()
        until(lambda: not is_alive(worker), "an orphan")
        node.start()
        assert asyncio.run(read(node.bootstrap)) == table


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost() -> None:
    with broker(SETTINGS) as node:
        asyncio.run(create(node.bootstrap))
        table = asyncio.run(fill(node.bootstrap, 6000))
        until(lambda: is_compacted(node), "it is not compacted")
        (worker,) = workers_of(node)
        os.kill(worker, signal.SIGKILL)
        table |= asyncio.run(fill(node.bootstrap, 6000, start=6000))
        until(lambda: is_compacted(node), "it is not compacted again")
        assert asyncio.run(read(node.bootstrap)) == table
        assert workers_of(node) != [worker]
        node.stop()
        assert (Path(node.directory) / ".kafka_cleanshutdown").exists()
