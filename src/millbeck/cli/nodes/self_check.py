"""The ``--check`` of a node: produce records through its own listener and consume them again."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Final

import click

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.client.consumer import Consumer
from millbeck.client.producer import Producer
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.server.node import Node

RECORD_COUNT: Final = 500
PARTITION_COUNT: Final = 3
VALUE_BYTES: Final = 100
SECONDS_MAX: Final = 30.0

Records = dict[int, list[tuple[bytes | None, bytes | None]]]


async def produce_and_consume(node: Node, client: Mapping[str, str] | None = None) -> None:
    """Print one line with counts and times; raises if the consumed records differ from the produced ones.

    ``client`` are the settings by which to connect, if the node has no PLAINTEXT listener.
    """
    address = address_of(node) if client is None else client["bootstrap.servers"]
    settings = {"bootstrap.servers": address, **(client or {}), "client.id": "millbeck-check"}
    topic = f"millbeck-check-{node.environment.randomness.uuid().hex()[:8]}"
    try:
        async with Admin(settings, environment=node.environment) as admin:
            (await admin.create_topics([NewTopic(name=topic, partition_count=PARTITION_COUNT)])).all()
            try:
                started_s = perf_counter()
                sent = await _produce(node, settings, topic)
                produced_s = perf_counter()
                received = await _consume(node, settings, topic)
                consumed_s = perf_counter()
            finally:
                await admin.delete_topics([topic])
    except ApiError as error:
        raise click.ClickException(f"the check failed: {error}") from error
    if received != sent:
        raise click.ClickException(f"the check failed: {difference(sent, received)}")
    size_bytes = sum(len(key or b"") + len(value or b"") for records in sent.values() for key, value in records)
    click.echo(
        f"millbeck at {address}: {RECORD_COUNT} records ({size_bytes} bytes, {PARTITION_COUNT} partitions) produced in "
        f"{(produced_s - started_s) * 1000:.0f} ms, consumed in {(consumed_s - produced_s) * 1000:.0f} ms, all equal"
    )


def address_of(node: Node) -> str:
    """The address of the node's PLAINTEXT listener, which needs no certificate."""
    plain = [listener for listener in node.listeners if listener.address.protocol == "PLAINTEXT"]
    if not plain:
        raise click.ClickException("the check needs a PLAINTEXT listener")
    host = plain[0].address.host or "localhost"
    return f"{f'[{host}]' if ':' in host else host}:{plain[0].port}"


async def _produce(node: Node, settings: dict[str, str], topic: str) -> Records:
    sent: Records = {number: [] for number in range(PARTITION_COUNT)}
    async with Producer(settings, environment=node.environment) as producer:
        waiting = []
        for number in range(RECORD_COUNT):
            key = b"key-%d" % number
            value = (b"value %d " % number).ljust(VALUE_BYTES, b".")
            partition = number % PARTITION_COUNT
            sent[partition].append((key, value))
            waiting.append(await producer.enqueue(topic, value, key=key, partition=partition))
        await producer.flush(SECONDS_MAX)
        for future in waiting:
            await future
    return sent


async def _consume(node: Node, settings: dict[str, str], topic: str) -> Records:
    received: Records = {number: [] for number in range(PARTITION_COUNT)}
    async with Consumer({**settings, "enable.auto.commit": "false"}, environment=node.environment) as consumer:
        consumer.assign(TopicPartition(topic, number) for number in range(PARTITION_COUNT))
        consumer.seek_to_beginning()
        end_s = perf_counter() + SECONDS_MAX
        while sum(map(len, received.values())) < RECORD_COUNT and perf_counter() < end_s:
            for partition, records in (await consumer.poll(timeout_s=1.0)).items():
                received[partition.partition] += [(record.key, record.value) for record in records]
    return received


def difference(sent: Records, received: Records) -> str:
    """Describe the first difference."""
    for number, records in sent.items():
        there = received[number]
        for position, record in enumerate(records):
            if position >= len(there):
                return f"partition {number} returned {len(there)} of {len(records)} records"
            if there[position] != record:
                return f"partition {number}, record {position} is {there[position]!r}, sent was {record!r}"
    return "more records were consumed than produced"
