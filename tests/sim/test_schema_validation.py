"""A cluster whose brokers validate schemas: a schema is accepted as soon as it is registered, whoever leads what."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator

import pytest

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.client.config import Value
from millbeck.client.producer import Producer
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidRecord, TopicAlreadyExists
from millbeck.simulation.cluster import PORT, SimCluster

SCHEMAS = 12
CONFIGS = {"min.insync.replicas": "2"}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def schema_record(number: int) -> tuple[bytes, bytes]:
    key = {"keytype": "SCHEMA", "subject": "orders-value", "version": number, "magic": 1}
    value = {"subject": "orders-value", "version": number, "id": number, "schema": '"string"', "deleted": False}
    return json.dumps(key).encode(), json.dumps(value).encode()


def with_id(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + b"payload"


async def refused(producer: Producer, value: bytes) -> bool:
    try:
        await producer.send("orders", value)
    except InvalidRecord:
        return True
    return False


async def scenario(cluster: SimCluster, environment: Environment) -> None:
    cluster.start_all()
    servers = ",".join(f"{member.name}:{PORT}" for member in cluster.brokers)
    settings: dict[str, Value] = {
        "bootstrap.servers": servers,
        "delivery.timeout.ms": 60_000,
        "request.timeout.ms": 4000,
        "linger.ms": 0,
    }
    validated = {**CONFIGS, "confluent.value.schema.validation": "true"}
    topics = [
        NewTopic(
            name="_schemas", partition_count=1, replication_factor=3, configs={**CONFIGS, "cleanup.policy": "compact"}
        ),
        NewTopic(name="orders", partition_count=3, replication_factor=3, configs=validated),
    ]
    async with Admin({"bootstrap.servers": servers}, environment=environment) as admin:
        for _ in range(50):
            failed = (await admin.create_topics(topics)).failed
            if all(isinstance(each, TopicAlreadyExists) for each in failed.values()):
                break
            await asyncio.sleep(0.5)
    async with (
        Producer(settings, environment=environment) as registry,
        Producer(settings, environment=environment) as producer,
        Producer(settings, environment=environment) as other,
    ):
        for number in range(1, SCHEMAS + 1):
            key, value = schema_record(number)
            await registry.send("_schemas", value, key=key)
            # To each partition, since each may have another leader.
            await asyncio.gather(*(producer.send("orders", with_id(number), partition=index) for index in range(3)))
            assert await refused(other, with_id(number + 1))
            assert await refused(other, b"no id")
            if number % 4 == 0:
                victim = cluster.brokers[(number // 4) % 3]
                cluster.machine(victim).crash()
                await asyncio.sleep(1.0)
                cluster.start_all()


@pytest.mark.parametrize("number", [1, 2])
def test_a_registered_schema_is_never_refused(number: int) -> None:
    cluster = SimCluster(number, settings={"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"})
    with cluster.world as world:
        world.run(lambda environment: scenario(cluster, environment), limit_s=600)
