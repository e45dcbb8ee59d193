"""What the cluster's users do meanwhile, each a process: `python -m nemesis.clients ROLE ... FILE OPTIONS`.

Every line of FILE is one JSON array, written as it happens, with the monotonic time that all processes of a machine
share. A producer says what it is about to send before it hands it to librdkafka, so that a record nobody heard of again
is known to be possible. A process ends when its input is closed: a producer then waits for what is on its way.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

FLUSH_S = 120.0
FLOOD_BURST = 500
IDLE_S = 5.0


class Notes:
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def add(self, *entry: Any) -> None:
        line = json.dumps([time.monotonic(), *entry])
        with self._lock:
            self._out.write(line + "\n")


def until_input_closes() -> threading.Event:
    closed = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        closed.set()

    threading.Thread(target=wait, daemon=True).start()
    return closed


def produce(
    bootstrap: str, topic: str, notes: Notes, *, name: str, partitions: int, rate: float, delivery_timeout_ms: int
) -> None:
    """Idempotent, acks=all, at a steady rate over all partitions in turn."""
    fatal: list[str] = []

    def on_error(error: KafkaError) -> None:
        notes.add("error", error.name(), error.str(), error.fatal())
        if error.fatal():
            fatal.append(error.str())

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": name,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "delivery.timeout.ms": delivery_timeout_ms,
            "retry.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "socket.timeout.ms": 5000,
            # librdkafka waits for the next refresh when a leader dies: this is the grain of what is measured.
            "topic.metadata.refresh.interval.ms": 200,
            "error_cb": on_error,
            # When it takes a new epoch, and why: then it may write again what was written before.
            "debug": "eos",
            "log_level": 7,
        }
    )

    def delivered(error: KafkaError | None, message: Message) -> None:
        value = (message.value() or b"").decode()
        if error is None:
            notes.add("acknowledged", value, message.offset())
        else:
            notes.add("undelivered", value, error.name())

    closed = until_input_closes()
    left = 0
    try:
        _produce_steadily(producer, topic, notes, name, partitions, rate, delivered, lambda: closed.is_set() or fatal)
        left = producer.flush(FLUSH_S)
    except KafkaException as error:
        # librdkafka raises what it has told of already, and delivers nothing more.
        if not error.args[0].fatal():
            raise
    notes.add("end", left, fatal)


def _produce_steadily(
    producer: Producer,
    topic: str,
    notes: Notes,
    name: str,
    partitions: int,
    rate: float,
    delivered: Callable[[KafkaError | None, Message], None],
    is_over: Callable[[], object],
) -> None:
    start_s = time.monotonic()
    count = 0
    while not is_over():
        due_s = start_s + count / rate
        producer.poll(max(0.0, min(due_s - time.monotonic(), 0.1)))
        if time.monotonic() < due_s:
            continue
        value = f"{name}.{count}"
        partition = count % partitions
        notes.add("send", name, partition, value)
        try:
            producer.produce(topic, value=value.encode(), partition=partition, on_delivery=delivered)
        except BufferError:
            notes.add("unsent", value)
            producer.poll(0.1)
        count += 1


def consume(
    bootstrap: str, topic: str, notes: Notes, *, name: str, partitions: int, only_committed: bool = False
) -> None:
    """Follow every partition from its start."""

    def on_error(error: KafkaError) -> None:
        notes.add("error", error.name(), error.str(), error.fatal())

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed" if only_committed else "read_uncommitted",
            "fetch.wait.max.ms": 100,
            "reconnect.backoff.max.ms": 500,
            "error_cb": on_error,
            "log_level": 2,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    closed = until_input_closes()
    while not closed.is_set():
        for message in consumer.consume(1000, 0.2):
            _note_message(notes, message)
    consumer.close()
    notes.add("end", 0, [])


def take_part(bootstrap: str, topic: str, notes: Notes, *, name: str) -> None:
    """A member of a group, whose coordinators come and go; says how many different records it was given."""

    def on_error(error: KafkaError) -> None:
        notes.add("error", error.name(), error.str(), error.fatal())

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "auto.commit.interval.ms": 500,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "reconnect.backoff.max.ms": 500,
            "error_cb": on_error,
            "log_level": 2,
        }
    )
    consumer.subscribe([topic])
    given: set[tuple[int | None, int | None]] = set()
    closed = until_input_closes()
    last_s = time.monotonic()
    # Who was sent away by a coordinator that went away has some seconds to come back.
    while not closed.is_set() or time.monotonic() < last_s + IDLE_S:
        for message in consumer.consume(1000, 0.2):
            last_s = time.monotonic()
            error = message.error()
            if error is None:
                given.add((message.partition(), message.offset()))
            else:
                notes.add("read error", error.name(), error.str())
    consumer.close()
    notes.add("given", len(given))


def read_all(bootstrap: str, topic: str, notes: Notes, *, name: str, partitions: int, patience_s: float) -> None:
    """Every partition from its start to its high watermark, once the cluster is whole again."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": name, "enable.auto.commit": False, "auto.offset.reset": "error"}
    )
    deadline_s = time.monotonic() + patience_s
    for index in range(partitions):
        partition = TopicPartition(topic, index, 0)
        _, end = consumer.get_watermark_offsets(partition, timeout=patience_s)
        consumer.assign([partition])
        position = 0
        while position < end:
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"partition {index} was read up to {position} of {end} only")
            for message in consumer.consume(1000, 1.0):
                _note_message(notes, message)
                if message.error() is None:
                    offset = message.offset()
                    assert offset is not None
                    position = offset + 1
        notes.add("whole", index, end)
    consumer.close()


def read_committed(bootstrap: str, topic: str, notes: Notes, *, name: str, partitions: int, patience_s: float) -> None:
    """What is committed in every partition, up to where it is stable; beside it, where the partition ends."""
    settings = {"bootstrap.servers": bootstrap, "group.id": name, "enable.auto.commit": False}
    consumer = Consumer(
        settings | {"auto.offset.reset": "error", "isolation.level": "read_committed", "enable.partition.eof": True}
    )
    other = Consumer(settings | {"isolation.level": "read_uncommitted"})
    deadline_s = time.monotonic() + patience_s
    for index in range(partitions):
        _, end = other.get_watermark_offsets(TopicPartition(topic, index), timeout=patience_s)
        consumer.assign([TopicPartition(topic, index, 0)])
        stable = None
        while stable is None:
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"partition {index} was not read to its end")
            for message in consumer.consume(1000, 1.0):
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    stable = message.offset()
                else:
                    _note_message(notes, message)
        notes.add("whole", index, stable, end)
    consumer.close()
    other.close()


def flood(bootstrap: str, topic: str, notes: Notes, *, name: str, connections: int) -> None:
    """Ask one broker for its metadata over and over, many questions at a time."""
    host, port = bootstrap.split(":")
    asked = len(topic).to_bytes(2) + topic.encode()
    request = struct.pack(">hhih", 3, 1, 0, len(name)) + name.encode() + (1).to_bytes(4) + asked
    burst = (len(request).to_bytes(4) + request) * FLOOD_BURST
    closed = until_input_closes()

    def ask() -> None:
        with socket.create_connection((host, int(port))) as connection, connection.makefile("rb") as replies:
            while not closed.is_set():
                connection.sendall(burst)
                for _ in range(FLOOD_BURST):
                    replies.read(int.from_bytes(replies.read(4)))

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    closed.wait()
    notes.add("end", 0, [])


def burst(bootstrap: str, topic: str, notes: Notes, *, name: str, burst_topic: str, rate: float) -> None:
    """Records at a steady rate into the first partition of another topic, which nobody judges."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": name, "acks": 1, "log_level": 2})
    closed = until_input_closes()
    while not closed.wait(0.1):
        for _ in range(int(rate / 10)):
            producer.produce(burst_topic, value=topic.encode(), partition=0)
        producer.poll(0)
    notes.add("end", producer.flush(FLUSH_S), [])


def _note_message(notes: Notes, message: Message) -> None:
    error = message.error()
    if error is not None:
        notes.add("read error", error.name(), error.str())
    else:
        notes.add("read", message.partition(), message.offset(), (message.value() or b"").decode())


ROLES: dict[str, Callable[..., None]] = {
    "produce": produce,
    "consume": consume,
    "take-part": take_part,
    "read-all": read_all,
    "read-committed": read_committed,
    "flood": flood,
    "burst": burst,
}


def main() -> int:
    role, bootstrap, topic, path, options = sys.argv[1:]
    with open(path, "w", buffering=1) as out:
        ROLES[role](bootstrap, topic, Notes(out), **json.loads(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
