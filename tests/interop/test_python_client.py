"""The public API of the Python client on a cluster of either system whose brokers are killed and paused all the time.

Every record that was acknowledged is there once and in order, every group reads everything, transactions take effect
exactly once. INTEROP_CLIENT_SECONDS says for how long brokers are disturbed.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from millbeck.client import Admin, Consumer, Producer, ProducerRecord, Record, TopicPartition, sync
from millbeck.client.admin.results import NewTopic
from millbeck.client.errors import BufferFull
from millbeck.client.patterns import exactly_once
from millbeck.kernel.errors import ApiError
from tests.interop.cluster import NODE_IDS, Cluster

SECONDS = int(os.environ.get("INTEROP_CLIENT_SECONDS", "45"))
PARTITIONS = 3
PAUSE_S = (2.0, 6.0)
"""A pause may be longer than the session of a broker (3 s)."""
PATIENT = {"delivery.timeout.ms": 600_000, "request.timeout.ms": 5_000, "max.block.ms": 120_000}
OVERRIDES = {
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
}


@pytest.fixture
def cluster(system: str, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(system, tmp_path, overrides=OVERRIDES) as cluster:
        yield cluster


class Disturbance:
    """Kills a broker with SIGKILL or pauses it, one after the other, from a thread."""

    def __init__(self, cluster: Cluster) -> None:
        self.kills = self.pauses = 0
        self._cluster = cluster
        self._dice = random.Random(7)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Disturbance:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        turn = 0
        while not self._stopping.wait(4):
            node = self._cluster.nodes[NODE_IDS[turn % len(NODE_IDS)]]
            turn += 1
            if self._dice.random() < 0.5:
                node.kill()
                self._stopping.wait(1)
                node.start()
                self.kills += 1
            else:
                os.kill(node.pid, signal.SIGSTOP)
                time.sleep(self._dice.uniform(*PAUSE_S))
                os.kill(node.pid, signal.SIGCONT)
                self.pauses += 1


class Log:
    """What was sent to a topic and acknowledged: numbers by partition, in order."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.sent: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.is_whole = False

    @property
    def count(self) -> int:
        return sum(map(len, self.sent))

    async def fill(self, bootstrap: str, until_s: float) -> None:
        futures: list[list[asyncio.Future[object]]] = [[] for _ in range(PARTITIONS)]
        number = 0
        async with Producer(PATIENT, bootstrap_servers=bootstrap, linger_ms=5) as producer:
            while time.monotonic() < until_s:
                number += 1
                for partition in range(PARTITIONS):
                    try:
                        future = producer.send_nowait(self.topic, b"%d" % number, partition=partition)
                    except BufferFull:
                        future = await producer.enqueue(self.topic, b"%d" % number, partition=partition)
                    futures[partition].append(future)  # type: ignore[arg-type]
                    self.sent[partition].append(number)
                await asyncio.sleep(0.002)
            await producer.flush()
        for of_partition in futures:
            offsets = [future.result().offset for future in of_partition]  # type: ignore[attr-defined]
            assert offsets == sorted(offsets)
        self.is_whole = True


class Group:
    """What the members of a group have read: every number, by partition."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.seen: list[set[int]] = [set() for _ in range(PARTITIONS)]

    @property
    def is_done(self) -> bool:
        return self.log.is_whole and all(seen >= set(sent) for seen, sent in zip(self.seen, self.log.sent, strict=True))

    def take(self, records: list[Record[bytes, bytes]]) -> None:
        numbers = [int(record.value or b"") for record in records]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "a gap or another order"
        self.seen[records[0].partition].update(numbers)

    async def member(self, settings: dict[str, object]) -> None:
        async with Consumer(settings) as consumer:
            consumer.subscribe([self.log.topic])
            while not self.is_done:
                try:
                    for records in (await consumer.poll(timeout_s=0.5)).values():
                        self.take(records)
                    await consumer.commit(timeout_s=10)
                except ApiError:
                    await asyncio.sleep(0.2)  # another member reads them again, or this one

    def synchronous_member(self, settings: dict[str, object]) -> None:
        with sync.Consumer(settings) as consumer:
            consumer.subscribe([self.log.topic])
            while not self.is_done:
                try:
                    for records in consumer.poll(timeout_s=0.5).values():
                        self.take(records)
                    consumer.commit(timeout_s=10)
                except ApiError:
                    time.sleep(0.2)


def copied(record: Record[bytes, bytes]) -> list[ProducerRecord[bytes, bytes]]:
    return [ProducerRecord("copies", record.value, partition=record.partition)]


async def copy(bootstrap: str, name: str) -> None:
    """Copies exactly once, until it is cancelled."""
    settings = {"bootstrap.servers": bootstrap, "request.timeout.ms": 5_000}
    reading = {"group.id": "copiers", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    producing = {"transactional.id": f"copier-{name}", "transaction.timeout.ms": 20_000, "max.block.ms": 120_000}
    async with (
        Producer(settings | producing) as producer,
        Consumer(settings | reading, enable_auto_commit=False, max_poll_records=100) as consumer,
    ):
        consumer.subscribe(["numbers"])
        await exactly_once(consumer, producer, copied)


async def read_all(bootstrap: str, topic: str, counts: list[int]) -> list[list[int]]:
    """The committed numbers of each partition, to its end."""
    found: list[list[int]] = [[] for _ in range(PARTITIONS)]
    settings = {"bootstrap.servers": bootstrap, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    async with Consumer(settings) as consumer, asyncio.timeout(120):
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        while any(len(numbers) < count for numbers, count in zip(found, counts, strict=True)):
            for partition, records in (await consumer.poll()).items():
                found[partition.partition] += [int(record.value or b"") for record in records]
        # Whatever is there twice comes after what is there once.
        for partition, records in (await consumer.poll(timeout_s=3)).items():
            found[partition.partition] += [int(record.value or b"") for record in records]
    return found


def test_nothing_is_lost_doubled_or_reordered(cluster: Cluster) -> None:
    bootstrap = cluster.bootstrap

    async def run() -> None:
        async with Admin(bootstrap_servers=bootstrap) as admin:
            topics = [
                NewTopic(name=name, partition_count=PARTITIONS, replication_factor=3) for name in ("numbers", "copies")
            ]
            (await admin.create_topics(topics)).all()
        log = Log("numbers")
        groups: list[Group] = []
        loop = asyncio.get_running_loop()
        reading = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        async with asyncio.timeout(SECONDS + 200), asyncio.TaskGroup() as tasks:
            copiers = [tasks.create_task(copy(bootstrap, name)) for name in ("a", "b")]
            members: list[asyncio.Future[None]] = []
            for protocol in ("classic", "consumer"):
                group = Group(log)
                groups.append(group)
                settings: dict[str, object] = reading | {"group.id": f"by-{protocol}", "group.protocol": protocol}
                members += [tasks.create_task(group.member(settings)) for _ in range(2)]
            group = Group(log)
            settings = reading | {"group.id": "synchronous"}
            members.append(loop.run_in_executor(None, group.synchronous_member, settings))
            with Disturbance(cluster) as disturbance:
                await asyncio.sleep(0)
                filling = tasks.create_task(log.fill(bootstrap, time.monotonic() + SECONDS))
                while not filling.done():
                    await asyncio.sleep(0.5)
                stopping = loop.run_in_executor(None, disturbance.__exit__)
                await stopping
            await asyncio.gather(*members)
            assert await read_all(bootstrap, "numbers", [len(sent) for sent in log.sent]) == log.sent
            assert await read_all(bootstrap, "copies", [len(sent) for sent in log.sent]) == log.sent
            for copier in copiers:
                copier.cancel()
        assert disturbance.kills + disturbance.pauses >= SECONDS // 15
        print(f"{log.count} records, {disturbance.kills} kills, {disturbance.pauses} pauses")

    asyncio.run(run())
