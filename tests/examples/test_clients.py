"""The examples of clients, in Python, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from millbeck.client import TopicPartition
from millbeck.client.admin.results import ConfigChange, ConfigResource, ResourceType
from millbeck.client.sync import Admin, Consumer, Producer
from millbeck.testing.broker_process import Broker, broker
from millbeck.testing.topics import create_topic

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
QUIET_SECONDS = "3"
"""An example that consumes ends after this time without records; joining a group takes less."""
SETTINGS = {
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
"""Members learn their assignment within a second."""


@pytest.fixture
def node() -> Iterator[Broker]:
    with broker({**SETTINGS, "num.partitions": "1"}) as running:
        yield running


def ran(node: Broker, program: str, *arguments: str) -> list[str]:
    """The lines that the example prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / program), node.bootstrap, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def put(node: Broker, topic: str, records: dict[str, str]) -> None:
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        for key, value in records.items():
            producer.send_nowait(topic, value.encode(), key=key.encode())


def read(node: Broker, topic: str) -> dict[str, str]:
    """The records of a topic by key, none of which occurs twice."""
    found: dict[str, str] = {}
    settings = {
        "bootstrap.servers": node.bootstrap,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }
    with Consumer(settings) as consumer:
        partition = TopicPartition(topic, 0)
        end = consumer.end_offsets([partition])[partition]
        consumer.assign([partition])
        while consumer.position(partition) < end:
            for record in consumer.poll()[partition]:
                key = (record.key or b"").decode()
                assert key not in found
                found[key] = (record.value or b"").decode()
    return found


def test_a_producer_and_a_consumer(node: Broker) -> None:
    create_topic(node.bootstrap, "orders")
    assert ran(node, "produce-consume/produce.py", "3")[-1] == "order-2 is at offset 2 of partition 0"
    assert ran(node, "produce-consume/consume.py", QUIET_SECONDS) == ["0 apples", "1 apples", "2 apples"]
    assert ran(node, "produce-consume/consume.py", QUIET_SECONDS) == [], "the group has committed them"


def test_consume_process_produce(node: Broker) -> None:
    for topic in ("orders", "enriched-orders"):
        create_topic(node.bootstrap, topic)
    put(node, "orders", {str(number): str(number) for number in range(50)})
    ran(node, "transactions/enrich.py", QUIET_SECONDS)
    ran(node, "transactions/enrich.py", QUIET_SECONDS)
    assert read(node, "enriched-orders") == {str(number): f"{number}, enriched" for number in range(50)}


def test_a_queue_of_jobs(node: Broker) -> None:
    create_topic(node.bootstrap, "image-jobs")
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        group = ConfigResource(ResourceType.GROUP, "image-processors")
        admin.incremental_alter_configs({group: [ConfigChange(name="share.auto.offset.reset", value="earliest")]})
    put(node, "image-jobs", {"a": "cat.png", "b": "busy.png", "c": "broken.png"})
    assert sorted(ran(node, "share-consumer/work.py", "5")) == ["busy.png", "cat.png"]


def test_balances_are_rebuilt_from_offset_0(node: Broker) -> None:
    for topic in ("movements", "balances"):
        create_topic(node.bootstrap, topic)
    for account, cents in (("a", 500), ("b", 20), ("a", -120)):
        put(node, "movements", {account: json.dumps({"cents": cents})})
    put(node, "balances", {"a": '{"cents": 380}', "b": '{"cents": 20}'})
    assert ran(node, "account-balances/rebuild.py") == ["a 380 as written", "b 20 as written"]
