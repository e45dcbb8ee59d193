"""kill -9 in a produce loop: every acknowledged record is there once, in order, after each restart.

One idempotent acks=all producer lives through all rounds, as an application would. The broker is killed with no warning
while records are on their way, and started again on the same directory and port. The page cache survives a killed
process, so nothing acknowledged may be missing, whatever was being written at that moment.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.systems import SYSTEMS, Node

ROUNDS = int(os.environ.get("INTEROP_KILLS", "50"))
PARTITIONS = 3
TOPIC = "killed"


class SteadyProducer:
    """Produces numbered records to all partitions from a thread and remembers what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "message.timeout.ms": 0,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.failures: list[str] = []
        self.produced = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acknowledged[message.partition()].append(int(message.value().split()[0]))

    def _run(self) -> None:
        while not self._stopping.is_set():
            if len(self._producer) > 2000:
                self._producer.poll(0.01)
                continue
            value = f"{self.produced} " + "x" * (self.produced % 700)
            self._producer.produce(
                TOPIC, value=value, partition=self.produced % PARTITIONS, on_delivery=self._on_delivery
            )
            self.produced += 1
            self._producer.poll(0.0005 if self.produced % 20 == 0 else 0)

    def total_acknowledged(self) -> int:
        return sum(map(len, self.acknowledged))

    def finish(self) -> int:
        self._stopping.set()
        self._thread.join(10)
        unsent: int = self._producer.flush(60)
        return unsent


def _values(bootstrap: str, partition: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    try:
        _, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), 30)
        consumer.assign([TopicPartition(TOPIC, partition, 0)])
        values: list[int] = []
        deadline_s = time.monotonic() + 60
        while len(values) < high:
            assert time.monotonic() < deadline_s, f"{len(values)} of {high} records came"
            for message in consumer.consume(5000, 0.2):
                assert not message.error(), message.error()
                assert message.offset() == len(values)
                values.append(int((message.value() or b"").split()[0]))
        return values
    finally:
        consumer.close()


@pytest.fixture
def killable(system: str, tmp_path: Path) -> Iterator[Node]:
    overrides = {"log.segment.bytes": str(1 << 20), "group.initial.rebalance.delay.ms": "0"}
    with SYSTEMS[system](tmp_path, overrides=overrides) as node:
        yield node


@pytest.mark.timeout(1800)
def test_acknowledged_records_survive_kill_9_once_and_in_order(killable: Node) -> None:
    seed = int(os.environ.get("INTEROP_SEED", "20"))
    pauses = random.Random(seed)
    admin = AdminClient({"bootstrap.servers": killable.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
    producer = SteadyProducer(killable.bootstrap)
    for round_number in range(ROUNDS):
        before = producer.total_acknowledged()
        deadline_s = time.monotonic() + 60
        while producer.total_acknowledged() < before + 200:
            assert not producer.failures, producer.failures[0]
            assert time.monotonic() < deadline_s, f"round {round_number}: no records are acknowledged any more"
            time.sleep(0.005)
        time.sleep(pauses.uniform(0, 0.15))
        killable.kill()
        killable.start()
    assert producer.finish() == 0
    assert producer.failures == []
    for partition in range(PARTITIONS):
        values = _values(killable.bootstrap, partition)
        assert values == sorted(set(values)), "a record is there twice or out of order"
        assert producer.acknowledged[partition] == sorted(producer.acknowledged[partition])
        assert set(producer.acknowledged[partition]) <= set(values), "an acknowledged record is lost"
        assert values == list(range(partition, producer.produced, PARTITIONS))
