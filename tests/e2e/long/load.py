"""Load on a cluster whose nodes are restarted meanwhile: every record is acknowledged, and comes once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaError, Message, Producer

from millbeck.cli.main import cli

PARTITIONS = 3


class Load:
    """One producer and one consumer that go on all the while; what went wrong is kept."""

    def __init__(
        self, bootstrap: str, settings: Mapping[str, str] = MappingProxyType({}), *, group: str = "g", topic: str = "t"
    ) -> None:
        """``settings`` are those by which both log in."""
        self._settings = {"bootstrap.servers": bootstrap, **settings}
        self._group, self._topic = group, topic
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._produce), threading.Thread(target=self._consume)]
        self.failures: list[str] = []
        self.acknowledged: list[bytes] = []
        self.consumed: list[bytes] = []

    def __enter__(self) -> Load:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for each in self._threads:
            each.join(90)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(f"delivery: {error}")
        else:
            self.acknowledged.append(message.value() or b"")

    def _produce(self) -> None:
        producer = Producer({**self._settings, "enable.idempotence": True, "linger.ms": 2, "acks": "all"})
        number = 0
        while not self._end.is_set():
            producer.produce(self._topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._delivered)
            number += 1
            producer.poll(0.003)
        if producer.flush(60):
            self.failures.append("not everything was delivered")

    def _consume(self) -> None:
        consumer = Consumer({**self._settings, "group.id": self._group, "auto.offset.reset": "earliest"})
        consumer.subscribe([self._topic])
        deadline_s = float("inf")
        while len(self.consumed) < len(self.acknowledged) or self._threads[0].is_alive():
            for message in consumer.consume(500, 0.2):
                error = message.error()
                if error is not None:
                    self.failures.append(f"consumer: {error}")
                else:
                    self.consumed.append(message.value() or b"")
            if self._end.is_set():
                deadline_s = min(deadline_s, time.monotonic() + 60)
            if time.monotonic() > deadline_s:
                break
        consumer.close()


def run(bootstrap: str, *arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, list(arguments), env={"MILLBECK_BOOTSTRAP": bootstrap}, prog_name="millbeck")
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.2)
