"""A node whose disk is full or whose audit topic cannot be written serves its clients, and audits what it can."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from millbeck.kernel.environment import Environment, OpenMode
from millbeck.security.audit.events import AuditKind, event_of
from millbeck.server.audit.audit_log import QUEUED_MAX, SinkQueue
from millbeck.server.audit.audit_topic import AUDIT_TOPIC
from millbeck.wire.messages.metadata import MetadataRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, produce, run_scenario

FILE = "/data/audit.log"


def the_queue(harness: BrokerHarness) -> SinkQueue:
    assert harness.node is not None
    assert harness.node.audit is not None
    (queue,) = harness.node.audit.queues
    return queue


def report(harness: BrokerHarness, count: int, *, long: str = "") -> None:
    """Report changes, which are never folded."""
    assert harness.node is not None
    assert harness.node.audit is not None
    for number in range(count):
        harness.node.audit.record(event_of(AuditKind.CHANGED, {"after": long}, kind="test", name=str(number)))


async def answers_at_once(client: Client, environment: Environment) -> None:
    began_s = environment.clock.monotonic()
    assert (await client.ask(MetadataRequest(topics=[]), 9)).brokers
    assert environment.clock.monotonic() - began_s < 0.1


def lines_of(harness: BrokerHarness) -> list[dict[str, Any]]:
    assert harness.machine.run is not None
    files = harness.machine.run.environment.files
    file = files.open(FILE, OpenMode.READ)
    try:
        return [json.loads(line) for line in file.read(file.size(), 0).splitlines()]
    finally:
        file.close()


def test_a_full_disk_stops_nobody_and_each_line_is_written_once_there_is_room() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        disk = harness.machine.disk
        report(harness, 1)
        await asyncio.sleep(1)
        disk.faults.capacity_bytes = disk.used_bytes + 700
        report(harness, 50)
        for _ in range(5):
            await answers_at_once(client, environment)
            await asyncio.sleep(2)
        queue = the_queue(harness)
        assert (queue.written, queue.dropped) == (1, 0)
        report(harness, QUEUED_MAX)
        await answers_at_once(client, environment)
        assert queue.dropped == 50
        disk.faults.capacity_bytes = disk.used_bytes + 100_000_000
        await asyncio.sleep(60)
        assert (queue.written, queue.dropped) == (1 + QUEUED_MAX, 50)
        names = [each["name"] for each in lines_of(harness)]
        assert names == ["0", *map(str, range(50)), *map(str, range(QUEUED_MAX - 50))]

    run_scenario(scenario, millbeck_audit_file=FILE)


def test_a_topic_that_cannot_be_created_stops_nobody_and_is_written_once_it_is_there() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        report(harness, 3)
        for _ in range(5):
            await answers_at_once(client, environment)
            await asyncio.sleep(5)
        await create(client, "other")
        assert await produce(client, b"v", topic="other", acks=-1) == 0
        assert the_queue(harness).written == 0
        await create(client, AUDIT_TOPIC)
        await asyncio.sleep(5)
        queue = the_queue(harness)
        # The three, and both topics with their partitions.
        assert queue.written >= 5
        assert queue.dropped == 0

    run_scenario(scenario, millbeck_audit_topic="true", default_replication_factor="3")


def test_a_line_above_the_limit_of_the_topic_is_dropped_and_the_others_are_written() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, AUDIT_TOPIC, max_message_bytes="1000")
        await asyncio.sleep(2)
        queue = the_queue(harness)
        before = queue.written
        report(harness, 2)
        report(harness, 1, long="x" * 1000)
        report(harness, 20)
        await asyncio.sleep(5)
        assert (queue.written - before, queue.dropped) == (22, 1)

    run_scenario(scenario, millbeck_audit_topic="true")
