"""One load of one Python client, in a process of its own: ``python -m bench.client_loads CLIENT LOAD BOOTSTRAP TOPIC
COUNT SIZE``, and its result as JSON.

Loads: produce, consume, latency (1,000 records a second, each timed from the call to its acknowledgement). All clients
have acks=all, the same linger, no compression, and check the checksums of what they fetch.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

LINGER_MS = 5
PACE = 1000
_CHUNK = 1000

Result = dict[str, float]


def _timed(began: tuple[float, float], count: int) -> Result:
    return {"records": count, "seconds": time.perf_counter() - began[0], "cpu_s": time.process_time() - began[1]}


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _note(times_s: list[float], sent_s: float, *_: object) -> None:
    times_s.append(time.perf_counter() - sent_s)


def _percentiles(times_s: list[float]) -> Result:
    ordered = sorted(times_s)
    return {"p50_ms": ordered[len(ordered) // 2] * 1000, "p99_ms": ordered[len(ordered) * 99 // 100] * 1000}


async def millbeck_produce(bootstrap: str, topic: str, count: int, size: int) -> Result:
    from millbeck.client import Producer
    from millbeck.client.errors import BufferFull

    value = b"v" * size
    async with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS) as producer:
        await producer.send(topic, value)
        began = _clocks()
        send = producer.send_nowait
        for number in range(count):
            try:
                send(topic, value)
            except BufferFull:
                await producer.enqueue(topic, value)
            if number % _CHUNK == 0:
                await asyncio.sleep(0)
        await producer.flush()
        return _timed(began, count)


def millbeck_sync_produce(bootstrap: str, topic: str, count: int, size: int) -> Result:
    from millbeck.client.errors import BufferFull
    from millbeck.client.sync import Producer

    value = b"v" * size
    with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS) as producer:
        producer.send(topic, value)
        began = _clocks()
        for _ in range(count):
            while True:
                try:
                    producer.send_nowait(topic, value)
                    break
                except BufferFull:
                    time.sleep(0.001)
        producer.flush()
        return _timed(began, count)


async def millbeck_columns_produce(bootstrap: str, topic: str, count: int, size: int) -> Result:
    import pyarrow

    from millbeck.client import Producer

    table = pyarrow.table({"value": [b"v" * size] * count})
    async with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS) as producer:
        await producer.send(topic, b"v" * size)
        began = _clocks()
        for start in range(0, count, 50 * _CHUNK):
            await producer.send_columns(topic, table.slice(start, 50 * _CHUNK))
        return _timed(began, count)


async def aiokafka_produce(bootstrap: str, topic: str, count: int, size: int) -> Result:
    from aiokafka import AIOKafkaProducer

    value = b"v" * size
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=LINGER_MS) as producer:
        await producer.send_and_wait(topic, value)
        began = _clocks()
        for _ in range(count):
            await producer.send(topic, value)
        await producer.flush()
        return _timed(began, count)


def confluent_produce(bootstrap: str, topic: str, count: int, size: int) -> Result:
    from confluent_kafka import Producer

    value, failed = b"v" * size, 0

    def delivered(error: Any, message: Any) -> None:
        nonlocal failed
        failed += error is not None

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": LINGER_MS})
    producer.produce(topic, value)
    producer.flush()
    began = _clocks()
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        if number % _CHUNK == 0:
            producer.poll(0)
    producer.flush()
    assert not failed
    return _timed(began, count)


async def millbeck_consume(bootstrap: str, topic: str, count: int, size: int) -> Result:
    from millbeck.client import Consumer, TopicPartition

    settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    async with Consumer(settings, max_poll_records=10 * _CHUNK) as consumer:
        await consumer.topic(topic)
        began = _clocks()
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        while seen < count:
            for records in (await consumer.poll()).values():
                seen += len(records)
        return _timed(began, seen)


async def millbeck_columns_consume(bootstrap: str, topic: str, count: int, size: int) -> Result:
    import pyarrow  # noqa: F401

    from millbeck.client import Consumer, TopicPartition
    from millbeck.client.columns import arrow  # noqa: F401

    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        await consumer.topic(topic)
        began = _clocks()
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        while seen < count:
            for batches in (await consumer.poll_columns()).values():
                seen += sum(batch.num_rows for batch in batches)
        return _timed(began, seen)


def millbeck_sync_consume(bootstrap: str, topic: str, count: int, size: int) -> Result:
    from millbeck.client import TopicPartition
    from millbeck.client.sync import Consumer

    settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    with Consumer(settings, max_poll_records=10 * _CHUNK) as consumer:
        began = _clocks()
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        while seen < count:
            for records in consumer.poll().values():
                seen += len(records)
        return _timed(began, seen)


async def aiokafka_consume(bootstrap: str, topic: str, count: int, size: int) -> Result:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        began = _clocks()
        consumer.assign([TopicPartition(topic, 0)])
        seen = 0
        while seen < count:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                seen += len(records)
        return _timed(began, seen)


def confluent_consume(bootstrap: str, topic: str, count: int, size: int) -> Result:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "check.crcs": True})
    began = _clocks()
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen = 0
    while seen < count:
        seen += len(consumer.consume(10 * _CHUNK, 1.0))
    found = _timed(began, seen)
    consumer.close()
    return found


async def millbeck_latency(bootstrap: str, topic: str, count: int, size: int) -> Result:
    from millbeck.client import Producer

    value = b"v" * size
    times_s: list[float] = []
    async with Producer(bootstrap_servers=bootstrap, linger_ms=0) as producer:
        await producer.send(topic, value)
        began_s = time.perf_counter()
        for number in range(count):
            await asyncio.sleep(max(0.0, began_s + number / PACE - time.perf_counter()))
            sent_s = time.perf_counter()
            future = producer.send_nowait(topic, value)
            future.add_done_callback(partial(_note, times_s, sent_s))
        await producer.flush()
        await asyncio.sleep(0)
    return _percentiles(times_s)


def confluent_latency(bootstrap: str, topic: str, count: int, size: int) -> Result:
    from confluent_kafka import Producer

    value = b"v" * size
    times_s: list[float] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    producer.produce(topic, value)
    producer.flush()
    began_s = time.perf_counter()
    for number in range(count):
        producer.poll(max(0.0, began_s + number / PACE - time.perf_counter()))
        sent_s = time.perf_counter()
        producer.produce(topic, value, on_delivery=partial(_note, times_s, sent_s))
    producer.flush()
    return _percentiles(times_s)


Load = Callable[[str, str, int, int], Result | Coroutine[Any, Any, Result]]

LOADS: dict[tuple[str, str], Load] = {
    ("millbeck", "produce"): millbeck_produce,
    ("millbeck.sync", "produce"): millbeck_sync_produce,
    ("millbeck columns", "produce"): millbeck_columns_produce,
    ("aiokafka", "produce"): aiokafka_produce,
    ("confluent-kafka", "produce"): confluent_produce,
    ("millbeck", "consume"): millbeck_consume,
    ("millbeck.sync", "consume"): millbeck_sync_consume,
    ("millbeck columns", "consume"): millbeck_columns_consume,
    ("aiokafka", "consume"): aiokafka_consume,
    ("confluent-kafka", "consume"): confluent_consume,
    ("millbeck", "latency"): millbeck_latency,
    ("confluent-kafka", "latency"): confluent_latency,
}


def main() -> None:
    client, load, bootstrap, topic, count, size = sys.argv[1:]
    found = LOADS[client, load](bootstrap, topic, int(count), int(size))
    print(json.dumps(found if isinstance(found, dict) else asyncio.run(_whole(found))))


async def _whole(load: Coroutine[Any, Any, Result]) -> Result:
    return await load


if __name__ == "__main__":
    main()
