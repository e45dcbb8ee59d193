"""What the Python clients keep to: memory while a broker is stalled, and membership of a program that blocks."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from millbeck.client import Admin, Consumer, Producer, TopicPartition, sync
from millbeck.client.admin.results import NewTopic
from millbeck.client.errors import BufferFull
from millbeck.kernel.errors import ApiError
from millbeck.testing import Broker, broker

MIB = 1 << 20
STALL_S = 30.0
MARGIN_BYTES = 32 * MIB
BLOCK_S = 25.0
SESSION_MS = 10_000
RECORDS = 200


@pytest.fixture
def node() -> Iterator[Broker]:
    with broker() as started:
        yield started


async def create(bootstrap: str, *names: str, partitions: int = 2) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        topics = [NewTopic(name=name, partition_count=partitions, replication_factor=1) for name in names]
        (await admin.create_topics(topics)).all()


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


async def fill_while_stalled(bootstrap: str, value_bytes: int, node_pid: int) -> int:
    """Offer records without a pause while the broker is stopped; returns by how much the memory has grown."""
    value = b"v" * value_bytes
    async with Producer(bootstrap_servers=bootstrap, buffer_memory=32 * MIB) as producer:
        await producer.send("t", value)
        before = most = resident_bytes()
        os.kill(node_pid, signal.SIGSTOP)
        try:
            end_s = time.monotonic() + STALL_S
            refused = 0
            while time.monotonic() < end_s:
                for _ in range(1000):
                    try:
                        producer.send_nowait("t", value)
                    except BufferFull:
                        refused += 1
                most = max(most, resident_bytes())
                await asyncio.sleep(0.02)
        finally:
            os.kill(node_pid, signal.SIGCONT)
        assert refused
        await producer.flush()
    return most - before - 32 * MIB


async def read_without_polling(bootstrap: str, node_pid: int) -> int:
    """Fetch what the program does not poll; returns by how much more the memory has grown than the fetch limits say."""
    fetch_bytes = 8 * MIB
    async with Producer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
        for number in range(100_000):
            await producer.enqueue("t", b"v" * 1000, partition=number % 2)
    settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", "fetch.max.bytes": fetch_bytes}
    async with Consumer(settings, max_partition_fetch_bytes=fetch_bytes) as consumer:
        before = most = resident_bytes()
        consumer.assign([TopicPartition("t", number) for number in range(2)])
        seen = 0
        for turn in range(int(STALL_S)):
            if turn == 10:
                os.kill(node_pid, signal.SIGSTOP)
            if turn == 20:
                os.kill(node_pid, signal.SIGCONT)
            seen += sum(len(records) for records in (await consumer.poll(timeout_s=0.1, max_records=10)).values())
            most = max(most, resident_bytes())
            await asyncio.sleep(0.9)
        assert seen
    return most - before - 2 * fetch_bytes


MEASURES: dict[str, Callable[[str, int], int]] = {
    "produce 100 B": lambda bootstrap, pid: asyncio.run(fill_while_stalled(bootstrap, 100, pid)),
    "produce 10 KB": lambda bootstrap, pid: asyncio.run(fill_while_stalled(bootstrap, 10_000, pid)),
    "consume": lambda bootstrap, pid: asyncio.run(read_without_polling(bootstrap, pid)),
}


@pytest.mark.parametrize("what", MEASURES)
def test_memory_is_bounded_while_the_broker_is_stalled(node: Broker, what: str) -> None:
    asyncio.run(create(node.bootstrap, "t"))
    program = f"from {__name__} import MEASURES; print(MEASURES[{what!r}]({node.bootstrap!r}, {node.process_id}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    beyond = int(done.stdout.split()[-1])
    print(f"{what}: {beyond / MIB:.1f} MiB beyond the limits")
    assert beyond <= MARGIN_BYTES


def settings_of(bootstrap: str, protocol: str) -> dict[str, object]:
    settings: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "group.id": f"blocked-{protocol}",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "max.poll.interval.ms": 300_000,
    }
    return settings | ({"session.timeout.ms": SESSION_MS} if protocol == "classic" else {})


async def fill(bootstrap: str) -> None:
    await create(bootstrap, "t")
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(RECORDS):
            producer.send_nowait("t", b"%d" % number, partition=number % 2)
        await producer.flush()


def block_on_the_way(count: int) -> None:
    if count == RECORDS // 4:
        time.sleep(BLOCK_S)


async def read_and_block(settings: dict[str, object]) -> tuple[list[tuple[int, int]], int, int]:
    """All records as they came, how many of them were committed before the block, and the members' assignments."""
    seen: list[tuple[int, int]] = []
    committed = assignments = 0

    def on_assigned(partitions: list[TopicPartition]) -> None:
        nonlocal assignments
        assignments += bool(partitions)

    async with Consumer(settings) as consumer:
        consumer.subscribe(["t"], on_assigned=on_assigned)
        async for record in consumer:
            seen.append((record.partition, record.offset))
            if len(seen) % 10 == 0:
                try:
                    await consumer.commit()
                except ApiError:
                    continue  # the group has removed this member, which joins again
                committed = max(committed, len(seen)) if len(seen) <= RECORDS // 4 else committed
            block_on_the_way(len(seen))
            if len(set(seen)) == RECORDS:
                break
    return seen, committed, assignments


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_program_that_blocks_its_loop_is_told_and_loses_nothing(
    node: Broker, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(fill(node.bootstrap))
    with caplog.at_level(logging.WARNING, "millbeck.client"):
        seen, committed, assignments = asyncio.run(read_and_block(settings_of(node.bootstrap, protocol)))
    (warning,) = [each.getMessage() for each in caplog.records if "held" in each.getMessage()]
    assert "read_and_block (test_client_bounds.py:" in warning
    assert 24 <= float(warning.partition("held for ")[2].split()[0]) <= 27
    assert len(set(seen)) == RECORDS
    assert not set(seen[:committed]) & set(seen[committed:]), "a committed record came again"
    assert assignments == (2 if protocol == "classic" else 1), "the session of the other protocol is 45 s"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_synchronous_program_that_blocks_keeps_its_membership(node: Broker, protocol: str) -> None:
    asyncio.run(fill(node.bootstrap))
    seen: list[tuple[int, int]] = []
    assigned: list[int] = []
    with sync.Consumer(settings_of(node.bootstrap, protocol)) as consumer:
        consumer.subscribe(["t"], on_assigned=lambda partitions: assigned.append(len(partitions)))
        for record in consumer:
            seen.append((record.partition, record.offset))
            if len(seen) % 10 == 0:
                consumer.commit()
            block_on_the_way(len(seen))
            if len(seen) == RECORDS:
                break
    assert len(set(seen)) == RECORDS
    assert [count for count in assigned if count] == [2]
