"""`exactly_once`: every record has one committed output, whatever fails in between."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.client import Consumer, Producer, ProducerRecord, Record
from millbeck.client.patterns import exactly_once
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig, RequestTimedOut, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition
from tests.unit.client.one_node import HERE, in_world

TOPICS = {"in": 2, "out": 1}
OUT = TopicPartition("out", 0)


def copy(record: Record[bytes, bytes]) -> list[ProducerRecord[bytes, bytes]]:
    return [ProducerRecord("out", record.value)]


def consumer_of(environment: Environment, **changed: Any) -> Consumer[bytes, bytes]:
    settings: dict[str, Any] = {"group_id": "g", "isolation_level": "read_committed", "enable_auto_commit": False}
    settings |= {"auto_offset_reset": "earliest"}
    return Consumer(HERE, environment=environment, **settings | changed)


async def fill(environment: Environment, count: int, start: int = 0) -> None:
    async with Producer(HERE, environment=environment) as producer:
        for number in range(start, start + count):
            await producer.send("in", b"%d" % number, partition=number % 2)


async def run(
    environment: Environment, name: str, transform: Callable[..., Any], change: Callable[..., None] = lambda *_: None
) -> None:
    producer: Producer[bytes, bytes] = Producer(HERE, environment=environment, transactional_id=name)
    async with consumer_of(environment, session_timeout_ms=6000) as consumer, producer:
        consumer.subscribe(["in"])
        change(consumer, producer)
        await exactly_once(consumer, producer, transform, records_max=7)


async def outputs(environment: Environment, count: int) -> Counter[bytes | None]:
    """The committed outputs, when there are so many, and those that come after them."""
    found: Counter[bytes | None] = Counter()
    async with consumer_of(environment, group_id=None, enable_auto_commit=None) as consumer:
        consumer.assign([OUT])
        quiet = 0
        while quiet < 3 or found.total() < count:
            polled = await consumer.poll(timeout_s=1)
            found.update(record.value for records in polled.values() for record in records)
            quiet = 0 if polled else quiet + 1
    return found


def expected(count: int) -> Counter[bytes | None]:
    return Counter({b"%d" % number: 1 for number in range(count)})


def test_a_second_instance_that_joins_repeats_and_loses_nothing() -> None:
    async def scenario(environment: Environment) -> None:
        async def slow(record: Record[bytes, bytes]) -> list[ProducerRecord[bytes, bytes]]:
            await asyncio.sleep(0.05)
            return copy(record)

        await fill(environment, 300)
        first = asyncio.create_task(run(environment, "one", slow))
        await asyncio.sleep(6)
        second = asyncio.create_task(run(environment, "two", slow))
        assert await outputs(environment, 300) == expected(300)
        for task in (first, second):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    in_world(scenario, topics=TOPICS)


def test_an_error_of_the_function_leaves_no_trace() -> None:
    async def scenario(environment: Environment) -> None:
        def picky(record: Record[bytes, bytes]) -> list[ProducerRecord[bytes, bytes]]:
            if record.value == b"5":
                raise ZeroDivisionError
            return copy(record)

        await fill(environment, 10)
        with pytest.raises(ZeroDivisionError):
            await run(environment, "one", picky)
        whole = asyncio.create_task(run(environment, "one", copy))
        assert await outputs(environment, 10) == expected(10)
        whole.cancel()
        await asyncio.wait({whole})

    in_world(scenario, topics=TOPICS)


def test_a_transaction_that_fails_is_repeated() -> None:
    async def scenario(environment: Environment) -> None:
        failures: list[int] = []

        def change(consumer: Any, producer: Any) -> None:
            commit_offsets = producer.transactions._commit_offsets

            async def failing(*arguments: Any) -> None:
                if len(failures) < 2:
                    failures.append(1)
                    raise RequestTimedOut("lost")
                await commit_offsets(*arguments)

            producer.transactions._commit_offsets = failing

        await fill(environment, 20)
        task = asyncio.create_task(run(environment, "one", copy, change))
        assert await outputs(environment, 20) == expected(20)
        assert len(failures) == 2
        task.cancel()
        await asyncio.wait({task})

    in_world(scenario, topics=TOPICS)


def test_an_output_that_can_never_be_stored_is_raised_with_its_reason() -> None:
    async def scenario(environment: Environment) -> None:
        await fill(environment, 1)
        with pytest.raises(UnknownTopicOrPartition, match="partition 9"):
            await run(environment, "one", lambda record: [ProducerRecord("out", b"", partition=9)])

    in_world(scenario, topics=TOPICS)


@pytest.mark.parametrize(
    ("consumer", "producer", "named"),
    [
        ({"isolation_level": "read_uncommitted"}, {}, "isolation.level"),
        ({"enable_auto_commit": True}, {}, "enable.auto.commit"),
        ({"group_id": None}, {}, "group.id"),
        ({}, {"transactional_id": None}, "transactional.id"),
    ],
)
def test_settings_that_break_the_promise_are_refused(
    consumer: dict[str, Any], producer: dict[str, Any], named: str
) -> None:
    settings = {"bootstrap.servers": "h:1"}
    promised: dict[str, Any] = {"group_id": "g", "isolation_level": "read_committed", "enable_auto_commit": False}
    reading: Consumer[bytes, bytes] = Consumer(settings, **promised | consumer)
    writing: Producer[bytes, bytes] = Producer(settings, **{"transactional_id": "t"} | producer)
    with pytest.raises(InvalidConfig, match=named):
        asyncio.run(exactly_once(reading, writing, copy))
