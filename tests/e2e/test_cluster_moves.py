"""Partitions that move between brokers and partitions in trouble, on three real processes, by the commands for that."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from millbeck.cli.main import cli
from millbeck.testing import Cluster, cluster

VALUES = [b"%06d" % number * 200 for number in range(2400)]
Millbeck = Callable[..., str]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    fast = {
        "broker.session.timeout.ms": 1500,
        "broker.heartbeat.interval.ms": 300,
        "auto.leader.rebalance.enable": False,
    }
    with cluster(fast) as running:
        yield running


@pytest.fixture
def millbeck(nodes: Cluster) -> Millbeck:
    def run(*arguments: str, code: int = 0) -> str:
        environment = {"MILLBECK_BOOTSTRAP": nodes.bootstrap}
        done = CliRunner().invoke(cli, list(arguments), env=environment, prog_name="millbeck")
        assert done.exit_code == code, done.output
        return done.stdout if code == 0 else done.stderr

    return run


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 45
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def fill(bootstrap: str, topic: str, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
    for number, value in enumerate(VALUES):
        producer.produce(topic, value, partition=number % partitions)
        producer.poll(0)
    assert producer.flush(30) == 0


def read(bootstrap: str, topic: str, partition: int, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[bytes] = []
    deadline_s = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline_s:
        found += [message.value() or b"" for message in consumer.consume(500, 0.2) if message.error() is None]
    consumer.close()
    return found


def test_a_plan_is_generated_executed_watched_and_verified(nodes: Cluster, millbeck: Millbeck, tmp_path: Path) -> None:
    millbeck("topic", "create", "moved", "--replica-assignment", "1:2,2:1")
    fill(nodes.bootstrap, "moved", 2)
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text('{"topics": [{"topic": "moved"}]}')
    generated = millbeck("reassign", "generate", "--topics-to-move-json-file", str(topics), "--broker-list", "2,3")
    proposed = json.loads(generated.strip().splitlines()[-1])
    assert {tuple(sorted(each["replicas"])) for each in proposed["partitions"]} == {(2, 3)}
    plan.write_text(json.dumps(proposed))
    file = ("--reassignment-json-file", str(plan))
    assert "reassignment started" in millbeck("reassign", "execute", *file, "--throttle", "100000")
    rows = [line.split() for line in millbeck("reassign", "list", "--no-headers").splitlines()]
    assert [(topic, adding) for topic, _, _, adding, _ in rows] == [("moved", "3")] * 2
    # Half a megabyte at a time leaves each of them on its way, with some of it copied.
    until(lambda: " 0.0 of" not in millbeck("reassign", "verify", *file, "--preserve-throttles"))
    shown = millbeck("reassign", "verify", *file, "--preserve-throttles")
    assert shown.count("still moving, adding 3, ") == 2
    assert "MB copied" in shown
    assert "reassignments are in progress" in millbeck("reassign", "execute", *file, code=1)
    millbeck("reassign", "execute", *file, "--additional", "--throttle", "100000000")
    shown = millbeck("reassign", "verify", *file, "--wait")
    assert shown.count(": done") == 2
    assert "throttles were removed" in shown
    assert "throttled" not in millbeck("config", "describe", "--entity-type", "topics", "--entity-name", "moved")
    for partition in range(2):
        assert read(nodes.bootstrap, "moved", partition, len(VALUES) // 2) == VALUES[partition::2]


def test_a_plan_is_taken_back(nodes: Cluster, millbeck: Millbeck, tmp_path: Path) -> None:
    millbeck("topic", "create", "stayed", "--replica-assignment", "1:2")
    fill(nodes.bootstrap, "stayed", 1)
    plan = tmp_path / "plan.json"
    plan.write_text('{"partitions": [{"topic": "stayed", "partition": 0, "replicas": [3, 2]}]}')
    file = ("--reassignment-json-file", str(plan))
    millbeck("reassign", "execute", *file, "--throttle", "10000")
    assert "stayed-0: cancelled" in millbeck("reassign", "cancel", *file)
    assert "no partition is moving" in millbeck("reassign", "list")
    assert "instead of 3,2" in millbeck("reassign", "verify", *file)
    assert read(nodes.bootstrap, "stayed", 0, len(VALUES)) == VALUES


def test_partitions_in_trouble_are_told_apart_and_moved(nodes: Cluster, millbeck: Millbeck, tmp_path: Path) -> None:
    for topic, replicas, minimum in (("three", "3:1:2", 2), ("two", "3:1", 2), ("alone", "3", 1), ("safe", "1:2", 1)):
        setting = ("--config", f"min.insync.replicas={minimum}")
        millbeck("topic", "create", topic, "--replica-assignment", replicas, *setting)

    def shown(flag: str) -> set[str]:
        found = json.loads(millbeck("topic", "describe", flag, "--output", "json"))
        names = {str(each.get("topic") or each.get("name")) for each in found}
        return names & {"three", "two", "alone", "safe"}

    assert shown("--under-replicated") == set()
    nodes.node(3).kill()
    until(lambda: shown("--unavailable-partitions") == {"alone"})
    until(lambda: shown("--under-replicated-partitions") - {"alone"} == {"three", "two"})
    assert shown("--under-replicated") - {"alone"} == {"three", "two"}
    assert shown("--at-min-isr-partitions") >= {"three"}
    assert shown("--under-min-isr-partitions") >= {"two"}
    listed = json.loads(millbeck("cluster", "list-endpoints", "--output", "json"))
    assert [each["id"] for each in listed if each["state"] == "unfenced"] == [1, 2]
    plan = tmp_path / "plan.json"
    plan.write_text('{"partitions": [{"topic": "two", "partition": 0, "replicas": [1, 2]}]}')
    file = ("--reassignment-json-file", str(plan))
    assert "reassignment started" in millbeck("reassign", "execute", *file, "--throttle", "10KB"), (
        "away from one that is down"
    )
    nodes.node(3).start()
    until(lambda: shown("--under-replicated") == set())
    of_broker = ("config", "describe", "--entity-type", "brokers", "--entity-name", "3")
    assert "follower.replication.throttled.rate  10000" in millbeck(*of_broker)
    assert "two-0: done" in millbeck("reassign", "verify", *file, "--wait")
    assert "throttled.rate" not in millbeck(*of_broker)
    assert "three-0: elected" in millbeck("elect-leaders", "--all-topic-partitions")
    until(lambda: '"leader": 3' in millbeck("topic", "describe", "three", "--output", "json"))
