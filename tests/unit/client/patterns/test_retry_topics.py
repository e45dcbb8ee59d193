"""`RetryTopics`: what fails is tried again after its delay, then kept; what is behind it is not held up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.client import Admin, Consumer, Producer, Record, TopicPartition
from millbeck.client.patterns import RetryTopics
from millbeck.client.patterns.retry_topics import ATTEMPT, DUE, ERROR, OFFSET, TOPIC
from millbeck.client.serialization import StrSerde
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from tests.unit.client.one_node import HERE, in_world

SETTINGS: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
Handled = list[tuple[str, bytes | None, float]]


async def process(
    environment: Environment, retries: RetryTopics, handle: Callable[[Record[bytes, bytes]], None], seconds: float
) -> Handled:
    """Run for a while; what was handled, with the time."""
    loop = asyncio.get_running_loop()
    handled: Handled = []

    async def timed(record: Record[bytes, bytes]) -> None:
        handled.append((record.topic, record.value, loop.time()))
        handle(record)

    async with (
        Producer(HERE, environment=environment) as producer,
        Consumer(HERE, environment=environment, **SETTINGS) as consumer,
    ):
        task = asyncio.create_task(retries.run(consumer, producer, timed))
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
    return handled


async def fill(environment: Environment, values: list[bytes]) -> None:
    async with Producer(HERE, environment=environment) as producer:
        for value in values:
            await producer.send("t", value, key=b"k", headers=[("trace", b"7")])


async def dead(environment: Environment, retries: RetryTopics) -> list[Record[bytes, bytes]]:
    async with Consumer(HERE, environment=environment) as consumer:
        both = [TopicPartition(retries.dead_letter_topic, number) for number in range(2)]
        consumer.assign(both)
        consumer.seek_to_beginning(*both)
        return [record for records in (await consumer.poll(timeout_s=3)).values() for record in records]


def test_a_record_that_fails_is_handled_after_each_delay_and_kept_at_the_end() -> None:
    async def scenario(environment: Environment) -> None:
        retries = RetryTopics("t", "g", delays_s=(5, 20))
        async with Admin(HERE, environment=environment) as admin:
            await retries.create(admin)
            await retries.create(admin)

        def handle(record: Record[bytes, bytes]) -> None:
            if record.value == b"bad":
                raise ValueError("no such customer")

        await fill(environment, [b"1", b"bad", b"2"])
        handled = await process(environment, retries, handle, 60)
        assert [(topic, value) for topic, value, _ in handled] == [
            ("t", b"1"),
            ("t", b"bad"),
            ("t", b"2"),
            ("t-g-retry-1", b"bad"),
            ("t-g-retry-2", b"bad"),
        ]
        times = [time_s for _, value, time_s in handled if value == b"bad"]
        assert 5 <= times[1] - times[0] < 6
        assert 20 <= times[2] - times[1] < 21
        (kept,) = await dead(environment, retries)
        headers = dict(kept.headers)
        assert (kept.key, kept.value, headers["trace"]) == (b"k", b"bad", b"7")
        assert (headers[TOPIC], headers[OFFSET], headers[ATTEMPT]) == (b"t", b"1", b"3")
        assert headers[ERROR] == b"ValueError: no such customer"
        assert len(kept.headers) == len(headers)
        assert await process(environment, retries, handle, 30) == []

    in_world(scenario)


def test_a_restart_keeps_what_is_not_due() -> None:
    async def scenario(environment: Environment) -> None:
        retries = RetryTopics("t", "g", delays_s=(60,))
        async with Admin(HERE, environment=environment) as admin:
            await retries.create(admin)
        is_broken = True

        def handle(record: Record[bytes, bytes]) -> None:
            if is_broken:
                raise OSError

        await fill(environment, [b"1", b"2"])
        assert len(await process(environment, retries, handle, 20)) == 2
        is_broken = False
        again = await process(environment, retries, handle, 60)
        assert [(topic, value) for topic, value, _ in again] == [("t-g-retry-1", b"1"), ("t-g-retry-1", b"2")]
        assert await dead(environment, retries) == []

    in_world(scenario)


def test_permanent_errors_are_not_retried_and_wrong_headers_hold_up_nothing() -> None:
    async def scenario(environment: Environment) -> None:
        retries = RetryTopics("t", "g", delays_s=(5,), permanent=(KeyError,))
        async with Admin(HERE, environment=environment) as admin:
            await retries.create(admin)
        async with Producer(HERE, environment=environment) as producer:
            for due in (b"9" * 18, b"soon", None):
                await producer.send("t-g-retry-1", b"x", headers=[(DUE, due), (ATTEMPT, b"\xff")])

        def handle(record: Record[bytes, bytes]) -> None:
            raise KeyError(record.value)

        await fill(environment, [b"1"])
        handled = await process(environment, retries, handle, 30)
        assert sorted(value or b"" for _, value, _ in handled) == [b"1", b"x", b"x", b"x"]
        assert len(await dead(environment, retries)) == 4

    in_world(scenario)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"enable_auto_commit": True}, "enable.auto.commit=false"),
        ({"group_id": "other"}, "other"),
        ({"value_deserializer": StrSerde()}, "without deserializers"),
    ],
)
def test_consumers_that_break_the_promise_are_refused(changed: dict[str, Any], named: str) -> None:
    async def handle(record: Record[bytes, bytes]) -> None: ...

    consumer: Consumer[Any, Any] = Consumer({"bootstrap.servers": "h:1"}, **{**SETTINGS, **changed})
    with pytest.raises(InvalidConfig, match=named):
        asyncio.run(RetryTopics("t", "g").run(consumer, Producer(bootstrap_servers="h:1"), handle))
