"""The client side of a measurement, a process of its own: produce, consume, paced produce, or tail, by librdkafka.

`python -m bench.load` reads one JSON object of arguments from its input and writes one of results to its output. It
reads the broker's CPU time itself at the start and the end of the measured window, so that neither its own start-up nor
the parent's bookkeeping is counted. Nothing is measured before a first round trip has been made.

Paced produce sends on a fixed schedule and measures each record from the moment it was *due*, not from the moment it
could be sent: a stall is then felt by every record that was due in it (coordinated omission). The due time travels in
the record, and the tail measures end to end against it; both processes read the same monotonic clock.
"""

from __future__ import annotations

import json
import os
import random
import resource
import struct
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from bench import raw
from bench.systems.node import process_usage

QUEUE_BYTES_MAX = 64 << 20
QUEUE_RECORDS_MAX = 200_000
CHUNK_BYTES = 1 << 20
DUE = struct.Struct(">q")
WORDS = ("order", "payment", "customer", "amount", "status", "shipped", "pending", "currency", "region", "warehouse")


def make_values(record_bytes: int, count: int = 1000, seed: int = 1) -> list[bytes]:
    """Values like JSON events: words that repeat and numbers that do not, about 2.5 to 1 under lz4."""
    rng = random.Random(seed)
    values = []
    for _ in range(count):
        parts = bytearray()
        while len(parts) < record_bytes:
            parts += f'"{rng.choice(WORDS)}":{rng.randrange(10**9)},'.encode()
        values.append(bytes(parts[:record_bytes]))
    return values


class Window:
    """Wall time, own CPU and the CPU of the broker, or of all brokers of a cluster, between entry and exit."""

    def __init__(self, broker_pid: int | list[int]) -> None:
        self._broker_pids = broker_pid if isinstance(broker_pid, list) else [broker_pid] if broker_pid else []

    def _now(self) -> tuple[float, float, float]:
        own = resource.getrusage(resource.RUSAGE_SELF)
        broker = sum(process_usage(pid).cpu_seconds for pid in self._broker_pids)
        return time.monotonic(), own.ru_utime + own.ru_stime, broker

    def __enter__(self) -> Window:
        self._start = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        self._end = self._now()

    def result(self) -> dict[str, float]:
        wall_s, client_s, broker_s = (end - start for start, end in zip(self._start, self._end, strict=True))
        return {"seconds": wall_s, "client_cpu_seconds": client_s, "broker_cpu_seconds": broker_s}


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def latency_summary(latencies_ms: list[float]) -> dict[str, float]:
    ordered = sorted(latencies_ms)
    return {
        "count": len(ordered),
        "p50_ms": percentile(ordered, 0.50),
        "p99_ms": percentile(ordered, 0.99),
        "max_ms": ordered[-1],
    }


class Errors:
    """Counts records that were not delivered; the first reason is kept."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.count += 1
            self.first = self.first or str(error)


def _producer(arguments: dict[str, Any], linger_ms: float, **more: Any) -> Producer:
    return Producer(
        {
            "bootstrap.servers": arguments["bootstrap"],
            "batch.size": arguments["batch_bytes"],
            "batch.num.messages": 100_000,
            "acks": arguments["acks"],
            "compression.type": arguments["codec"],
            "linger.ms": linger_ms,
            "queue.buffering.max.messages": 2 * QUEUE_RECORDS_MAX,
            "queue.buffering.max.kbytes": 1 << 20,
            "log_level": 3,
            **arguments.get("client", {}),
            **more,
        }
    )


def produce(arguments: dict[str, Any]) -> dict[str, Any]:
    """As fast as it goes; the clock stops when everything is acknowledged."""
    size: int = arguments["record_bytes"]
    errors = Errors()
    producer = _producer(arguments, 5, **{"delivery.report.only.error": True, "on_delivery": errors.on_delivery})
    messages = [{"value": value} for value in make_values(size)]
    chunk = max(1, min(len(messages), CHUNK_BYTES // size))
    queued_max = max(chunk, min(QUEUE_RECORDS_MAX, QUEUE_BYTES_MAX // size))
    producer.produce(arguments["topic"], value=messages[0]["value"])
    producer.flush(60)
    left = count = arguments["total_bytes"] // size
    with Window(arguments["broker_pid"]) as window:
        while left:
            now = min(chunk, left)
            while len(producer) > queued_max:
                producer.poll(0.002)
            if producer.produce_batch(arguments["topic"], messages[:now]) != now:
                raise RuntimeError("the local queue refused records though it had room")
            left -= now
        unsent = producer.flush(120)
    if unsent or errors.count:
        raise RuntimeError(f"{unsent} records unsent, {errors.count} failed: {errors.first}")
    return window.result() | {"bytes": count * size, "records": count + 1}


def _consumer(arguments: dict[str, Any], **more: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": arguments["bootstrap"],
            "group.id": "bench",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            # A full local queue otherwise stops fetching for a whole second, which measures nothing.
            "fetch.queue.backoff.ms": 5,
            "log_level": 3,
            **arguments.get("client", {}),
            **more,
        }
    )


def consume(arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything from the beginning of every partition."""
    consumer = _consumer(arguments)
    wanted: int = arguments["records"]
    partitions = consumer.list_topics(arguments["topic"], timeout=30).topics[arguments["topic"]].partitions
    targets = [TopicPartition(arguments["topic"], partition, 0) for partition in partitions]
    deadline_s = time.monotonic() + 300
    received = size_bytes = 0
    with Window(arguments["broker_pid"]) as window:
        consumer.assign(targets)
        while received < wanted:
            messages = consumer.consume(min(10_000, wanted - received), 1.0)
            received += len(messages)
            size_bytes += len(messages) * arguments["record_bytes"]
            if messages and messages[0].error():
                raise RuntimeError(str(messages[0].error()))
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"only {received} of {wanted} records came")
    consumer.close()
    return window.result() | {"bytes": size_bytes, "records": received}


def paced_produce(arguments: dict[str, Any]) -> dict[str, Any]:
    """`rate` records a second for `seconds`; latency from due to acknowledged."""
    producer = _producer(arguments, 0)
    body = make_values(arguments["record_bytes"], count=1)[0][DUE.size :]
    latencies_ms: list[float] = []
    errors = Errors()
    stopping = threading.Event()

    def acknowledged(error: KafkaError | None, message: Message) -> None:
        now_ns = time.monotonic_ns()
        errors.on_delivery(error, message)
        (due_ns,) = DUE.unpack_from(message.value() or b"")
        if due_ns:
            latencies_ms.append((now_ns - due_ns) / 1e6)

    def serve() -> None:
        while not stopping.is_set():
            producer.poll(0.1)

    producer.produce(arguments["topic"], value=DUE.pack(0) + body, partition=0, on_delivery=acknowledged)
    producer.flush(60)
    server = threading.Thread(target=serve, daemon=True)
    server.start()
    interval_ns = int(1e9 / arguments["rate"])
    count = int(arguments["rate"] * arguments["seconds"])
    start_ns = time.monotonic_ns() + 50_000_000
    with Window(arguments["broker_pid"]) as window:
        for index in range(count):
            due_ns = start_ns + index * interval_ns
            ahead_ns = due_ns - time.monotonic_ns()
            if ahead_ns > 0:
                time.sleep(ahead_ns / 1e9)
            value = DUE.pack(due_ns) + body
            producer.produce(arguments["topic"], value=value, partition=0, on_delivery=acknowledged)
        while len(latencies_ms) < count and time.monotonic_ns() < start_ns + count * interval_ns + 60_000_000_000:
            time.sleep(0.01)
    stopping.set()
    server.join(5)
    if errors.count or len(latencies_ms) < count:
        raise RuntimeError(f"{len(latencies_ms)} of {count} acknowledged, {errors.count} failed: {errors.first}")
    return window.result() | latency_summary(latencies_ms)


def tail(arguments: dict[str, Any]) -> dict[str, Any]:
    """Follow partition 0 from its end; says `ready` once it does; latency from due to received."""
    consumer = _consumer(arguments)
    target = TopicPartition(arguments["topic"], 0)
    _, high = consumer.get_watermark_offsets(target, 30)
    consumer.assign([TopicPartition(arguments["topic"], 0, high)])
    consumer.poll(0.5)
    print("ready", flush=True)
    wanted = int(arguments["rate"] * arguments["seconds"])
    deadline_s = time.monotonic() + arguments["seconds"] + 90
    latencies_ms: list[float] = []
    while len(latencies_ms) < wanted and time.monotonic() < deadline_s:
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        (due_ns,) = DUE.unpack_from(message.value() or b"")
        if due_ns:
            latencies_ms.append((time.monotonic_ns() - due_ns) / 1e6)
    consumer.close()
    if len(latencies_ms) < wanted:
        raise RuntimeError(f"only {len(latencies_ms)} of {wanted} records came")
    return latency_summary(latencies_ms)


def replay(arguments: dict[str, Any]) -> dict[str, Any]:
    """Read whole partitions in 1 MiB fetches and throw the bytes away."""
    size_bytes = 0
    with raw.RawConnection(arguments["bootstrap"]) as connection, Window(arguments["broker_pid"]) as window:
        for partition in sorted(connection.partition_leaders(arguments["topic"])):
            offset = 0
            while True:
                connection.send_fetch(arguments["topic"], partition, offset, size_bytes_max=1 << 20)
                high_watermark, records = connection.receive_fetch()
                size_bytes += len(records)
                offset = raw.offset_after(records, offset)
                if offset >= high_watermark:
                    break
    return window.result() | {"bytes": size_bytes}


MODES = {"replay": replay, "produce": produce, "consume": consume, "paced_produce": paced_produce, "tail": tail}


def main() -> None:
    arguments = json.loads(sys.stdin.readline())
    # A heavy load beside a measured one must not take the core that they share.
    os.nice(arguments.get("nice", 0))
    print(json.dumps(MODES[arguments["mode"]](arguments)), flush=True)


if __name__ == "__main__":
    main()
