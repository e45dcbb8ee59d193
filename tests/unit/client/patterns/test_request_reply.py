"""`Requester` and `serve`: each request gets its own reply, or an error that says why not."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.client import Consumer, Producer, Record
from millbeck.client.errors import ClientClosed, RequestTimeout
from millbeck.client.patterns import Requester, serve
from millbeck.client.patterns.request_reply import RequestFailed
from millbeck.kernel.environment import Environment
from tests.unit.client.one_node import HERE, in_world

TOPICS = {"quotes": 1, "replies": 3}


async def answer(record: Record[bytes, bytes]) -> bytes | None:
    if record.value == b"bad":
        raise ValueError("no such pair")
    await asyncio.sleep(0.2 if record.value == b"slow" else 0)
    return b"re " + (record.value or b"")


async def answering(environment: Environment) -> None:
    async with (
        Consumer(HERE, environment=environment, group_id="g", auto_offset_reset="earliest") as consumer,
        Producer(HERE, environment=environment) as producer,
    ):
        consumer.subscribe(["quotes"])
        await serve(consumer, producer, answer)


def test_replies_find_their_requests() -> None:
    async def scenario(environment: Environment) -> None:
        server = asyncio.create_task(answering(environment))
        async with (
            Requester(HERE, "quotes", "replies", environment=environment) as first,
            Requester(HERE, "quotes", "replies", reply_partition=1, environment=environment) as second,
            Producer(HERE, environment=environment) as stranger,
        ):
            await stranger.send("quotes", b"no request")
            await stranger.send("replies", b"nobody's")
            asked = [requester.ask(value) for value in (b"slow", b"a", b"b") for requester in (first, second)]
            replies = [reply.value for reply in await asyncio.gather(*asked)]
            assert replies == [b"re slow", b"re slow", b"re a", b"re a", b"re b", b"re b"]
            with pytest.raises(RequestFailed, match="no such pair"):
                await first.ask(b"bad")
            assert (await second.ask(b"c", headers=[("h", b"1")])).partition == 1
        server.cancel()
        await asyncio.wait({server})

    in_world(scenario, topics=TOPICS)


def test_no_reply_is_a_timeout_and_closing_ends_the_wait() -> None:
    async def scenario(environment: Environment) -> None:
        async with Requester(HERE, "quotes", "replies", environment=environment) as requester:
            with pytest.raises(RequestTimeout, match="quotes after 2 s"):
                await requester.ask(b"a", timeout_s=2)
            waiting = asyncio.create_task(requester.ask(b"b"))
            await asyncio.sleep(1)
        with pytest.raises(ClientClosed):
            await waiting

    in_world(scenario, topics=TOPICS)
