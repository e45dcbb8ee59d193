"""Transactions with the clients that people use, and Kafka's own tools on what they leave."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.systems import Node
from tests.interop.cluster import _LIGHT, TOOL_TIMEOUT_S
from tools import peers

HERE = Path(__file__).parent
PATIENCE_S = 20


def java(*arguments: str) -> str:
    classpath = f"{peers.peer_path('kafka')}/*"
    done = subprocess.run(
        ["java", *_LIGHT, "-cp", classpath, *arguments], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    return done.stdout


def producer(node: Node, name: str, **settings: Any) -> Any:
    made = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": name, **settings})
    made.init_transactions(PATIENCE_S)
    return made


def committed_values(node: Node, topic: str, partition_count: int) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": f"reads-{topic}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partition_count)])
    values: list[str] = []
    ends = 0
    while ends < partition_count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        if message.error():
            ends += 1
        else:
            values.append((message.value() or b"").decode())
    consumer.close()
    return sorted(values)


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    return new_topic(partitions=2)


def test_librdkafka_commits_aborts_and_is_fenced(node: Node, topic: str) -> None:
    one = producer(node, f"rd-{topic}")
    for number in range(9):
        one.begin_transaction()
        for part in range(2):
            one.produce(topic, f"{number}-{part}", partition=part)
        if number % 3 == 2:
            one.flush(PATIENCE_S)
            one.abort_transaction(PATIENCE_S)
        else:
            one.commit_transaction(PATIENCE_S)
    newer = producer(node, f"rd-{topic}")
    one.begin_transaction()
    one.produce(topic, "zombie", partition=0)
    with pytest.raises(KafkaException):
        one.commit_transaction(PATIENCE_S)
    newer.begin_transaction()
    newer.produce(topic, "last", partition=0)
    newer.commit_transaction(PATIENCE_S)
    wanted = [f"{number}-{part}" for number in range(9) if number % 3 != 2 for part in range(2)]
    assert committed_values(node, topic, 2) == sorted([*wanted, "last"])


def test_librdkafka_carries_offsets_in_transactions(node: Node, topic: str) -> None:
    one = producer(node, f"offsets-{topic}")
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": f"carried-{topic}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    one.begin_transaction()
    for number in range(6):
        one.produce(topic, str(number), partition=0)
    one.commit_transaction(PATIENCE_S)
    consumer.subscribe([topic])
    seen = 0
    while seen < 4:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        seen += 0 if message.error() else 1
    position = [TopicPartition(topic, 0, 4)]
    for is_committed in (True, False):
        one.begin_transaction()
        one.produce(topic, "copy", partition=1)
        one.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), PATIENCE_S)
        if is_committed:
            one.commit_transaction(PATIENCE_S)
        else:
            one.abort_transaction(PATIENCE_S)
        position = [TopicPartition(topic, 0, 6)]
    assert [each.offset for each in consumer.committed([TopicPartition(topic, 0)], PATIENCE_S)] == [4]
    consumer.close()


@pytest.mark.timeout(200)
def test_java_commits_aborts_carries_offsets_and_is_fenced(node: Node, topic: str) -> None:
    printed = java(str(HERE / "java" / "Transact.java"), node.bootstrap, topic, f"java-{topic}").split()
    wanted = [f"{number}-{part}" for number in range(9) if number % 3 != 2 for part in range(2)]
    assert printed == ["8", ",".join(sorted([*wanted, "last"]))]
    assert committed_values(node, topic, 2) == sorted([*wanted, "last"])


@pytest.mark.timeout(200)
def test_kafka_transactions_sees_what_is_there(node: Node, topic: str) -> None:
    tool = "org.apache.kafka.tools.TransactionsCommand"
    name = f"tool-{topic}"
    one = producer(node, name)
    one.begin_transaction()
    one.produce(topic, "open", partition=0)
    one.flush(PATIENCE_S)
    where = ("--bootstrap-server", node.bootstrap)
    listed = java(tool, *where, "list")
    assert name in listed
    assert "Ongoing" in listed
    described = java(tool, *where, "describe", "--transactional-id", name)
    assert f"{topic}-0" in described
    producers = java(tool, *where, "describe-producers", "--topic", topic, "--partition", "0")
    assert "CurrentTransactionStartOffset" in producers
    java(tool, *where, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert committed_values(node, topic, 1) == []


@pytest.mark.timeout(200)
def test_kafka_dump_log_decodes_the_transaction_log(node: Node, topic: str) -> None:
    name = f"dumped-{topic}"
    one = producer(node, name)
    one.begin_transaction()
    one.produce(topic, "x", partition=0)
    one.commit_transaction(PATIENCE_S)
    logs = sorted(node.data.glob("__transaction_state-*/00000000000000000000.log"))
    files = ",".join(str(path) for path in logs if path.stat().st_size)
    dumped = java(
        "org.apache.kafka.tools.DumpLogSegments", "--transaction-log-decoder", "--print-data-log", "--files", files
    )
    assert name in dumped
    assert "PrepareCommit" in dumped or "transactionStatus" in dumped
