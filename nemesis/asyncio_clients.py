"""Producers and consumers of a run by other libraries than librdkafka: `python -m nemesis.asyncio_clients LIBRARY ...`.

They write the same notes as those of `nemesis.clients`, by millbeck's public API or by aiokafka's own.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from nemesis.clients import FLUSH_S, Notes, until_input_closes

LIBRARIES: Final = ("librdkafka", "aiokafka", "millbeck")
ROLES: Final = ("produce", "consume")

Send = Callable[[bytes, int], Awaitable["asyncio.Future[Any]"]]
"""Send a value to a partition; returns the future of its acknowledgement, whose result has its offset."""


async def produce(library: str, bootstrap: str, topic: str, notes: Notes, options: dict[str, Any]) -> None:
    """Idempotent, acks=all, at a steady rate over all partitions in turn."""
    name, partitions, rate = options["name"], options["partitions"], options["rate"]
    closed = until_input_closes()
    loop = asyncio.get_running_loop()
    waiting: set[asyncio.Future[Any]] = set()
    async with _PRODUCERS[library](bootstrap, topic, options) as send:
        start_s = loop.time()
        count = 0
        while not closed.is_set():
            await asyncio.sleep(max(0.0, start_s + count / rate - loop.time()))
            value = f"{name}.{count}"
            partition = count % partitions
            notes.add("send", name, partition, value)
            try:
                future = await send(value.encode(), partition)
            except Exception as error:
                notes.add("undelivered", value, f"{type(error).__name__}: {error}")
            else:
                waiting.add(future)
                future.add_done_callback(partial(_note_outcome, notes, value))
                future.add_done_callback(waiting.discard)
            count += 1
        if waiting:
            await asyncio.wait(waiting, timeout=FLUSH_S)
        notes.add("end", len(waiting), [])


def _note_outcome(notes: Notes, value: str, future: asyncio.Future[Any]) -> None:
    error = None if future.cancelled() else future.exception()
    if future.cancelled() or error is not None:
        notes.add("undelivered", value, f"{type(error).__name__}: {error}")
    else:
        notes.add("acknowledged", value, future.result().offset)


async def consume(library: str, bootstrap: str, topic: str, notes: Notes, options: dict[str, Any]) -> None:
    """Follow every partition from its start."""
    closed = until_input_closes()
    async with _CONSUMERS[library](bootstrap, topic, options) as poll:
        while not closed.is_set():
            for partition, offset, value in await poll():
                notes.add("read", partition, offset, value.decode())
    notes.add("end", 0, [])


@asynccontextmanager
async def _millbeck_producer(bootstrap: str, topic: str, options: dict[str, Any]) -> AsyncIterator[Send]:
    from millbeck.client import Producer

    settings = {"delivery.timeout.ms": options["delivery_timeout_ms"], "request.timeout.ms": 5_000, "linger.ms": 5}
    async with Producer(settings, bootstrap_servers=bootstrap, client_id=options["name"]) as producer:

        async def send(value: bytes, partition: int) -> asyncio.Future[Any]:
            return await producer.enqueue(topic, value, partition=partition)

        yield send


@asynccontextmanager
async def _aiokafka_producer(bootstrap: str, topic: str, options: dict[str, Any]) -> AsyncIterator[Send]:
    from aiokafka import AIOKafkaProducer

    # A batch expires after request_timeout_ms: aiokafka has no delivery timeout.
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        client_id=options["name"],
        enable_idempotence=True,
        linger_ms=5,
        request_timeout_ms=min(60_000, options["delivery_timeout_ms"]),
        metadata_max_age_ms=1_000,
    ) as producer:

        async def send(value: bytes, partition: int) -> asyncio.Future[Any]:
            return await producer.send(topic, value, partition=partition)  # type: ignore[no-any-return]

        yield send


Poll = Callable[[], Awaitable[list[tuple[int, int, bytes]]]]
"""Partitions, offsets and values of the next records."""


@asynccontextmanager
async def _millbeck_consumer(bootstrap: str, topic: str, options: dict[str, Any]) -> AsyncIterator[Poll]:
    from millbeck.client import Consumer, TopicPartition

    async with Consumer(
        bootstrap_servers=bootstrap, client_id=options["name"], auto_offset_reset="none", request_timeout_ms=5_000
    ) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(options["partitions"])]
        consumer.assign(partitions)
        for each in partitions:
            consumer.seek(each, 0)

        async def poll() -> list[tuple[int, int, bytes]]:
            found = await consumer.poll(timeout_s=0.2)
            return [(each.partition, each.offset, each.value or b"") for records in found.values() for each in records]

        yield poll


@asynccontextmanager
async def _aiokafka_consumer(bootstrap: str, topic: str, options: dict[str, Any]) -> AsyncIterator[Poll]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async with AIOKafkaConsumer(
        bootstrap_servers=bootstrap, client_id=options["name"], auto_offset_reset="none", metadata_max_age_ms=1_000
    ) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(options["partitions"])]
        consumer.assign(partitions)
        for each in partitions:
            consumer.seek(each, 0)

        async def poll() -> list[tuple[int, int, bytes]]:
            found = await consumer.getmany(timeout_ms=200)
            return [(each.partition, each.offset, each.value or b"") for records in found.values() for each in records]

        yield poll


_PRODUCERS = {"aiokafka": _aiokafka_producer, "millbeck": _millbeck_producer}
_CONSUMERS = {"aiokafka": _aiokafka_consumer, "millbeck": _millbeck_consumer}


def main() -> int:
    library, role, bootstrap, topic, path, options = sys.argv[1:]
    run = {"produce": produce, "consume": consume}[role]
    with open(path, "w", buffering=1) as out:
        asyncio.run(run(library, bootstrap, topic, Notes(out), json.loads(options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
