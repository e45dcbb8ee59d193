"""One HTTP request: what an answer may look like, and every way in which a server can misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from millbeck.client.http import HttpAnswer, HttpFailed, HttpLimits, http_request
from millbeck.kernel.environment import Environment
from millbeck.security.oauth.access import EVERYTHING, parse_location
from millbeck.simulation import World
from tests.fixtures.identity_provider import Provider

LIMITS = HttpLimits(connect_s=5, answer_s=10, bytes_max=100_000)


def run(scenario: Callable[[Environment, Provider], Coroutine[Any, Any, Any]]) -> Any:
    world = World(1)

    async def whole(environment: Environment) -> Any:
        provider = Provider(environment)
        await provider.serve()
        return await scenario(environment, provider)

    with world:
        return world.run(whole, limit_s=600)


async def get(environment: Environment, *, port: int = 8080, **options: Any) -> HttpAnswer:
    location = parse_location(f"http://localhost:{port}/jwks", "test", EVERYTHING)
    return await http_request(environment.network, location, tls=None, limits=LIMITS, **options)


@pytest.mark.parametrize("behaviour", ["well", "chunked", "until closed"])
def test_an_answer_however_it_is_framed(behaviour: str) -> None:
    async def scenario(environment: Environment, provider: Provider) -> None:
        provider.behaviour = behaviour
        answer = await get(environment)
        assert answer.status == 200
        assert len(json.loads(answer.body)["keys"]) == 3
        assert provider.headers[0]["host"] == "localhost:8080"

    run(scenario)


def test_a_form_is_posted() -> None:
    async def scenario(environment: Environment, provider: Provider) -> None:
        location = parse_location("http://localhost:8080/token?a=b", "test", EVERYTHING)
        headers = {"Authorization": "Other abc"}
        await http_request(
            environment.network, location, tls=None, limits=LIMITS, form="grant_type=x&a=%20", headers=headers
        )
        assert provider.asked == ["/token?a=b"]
        assert provider.forms == [{"grant_type": "x", "a": " "}]
        assert provider.headers[0]["authorization"] == "Other abc"
        assert provider.headers[0]["content-type"] == "application/x-www-form-urlencoded"

    run(scenario)


def test_other_statuses_are_the_callers_business() -> None:
    async def scenario(environment: Environment, provider: Provider) -> None:
        provider.behaviour = "refused"
        answer = await get(environment)
        assert (answer.status, json.loads(answer.body)["error"]) == (401, "invalid_client")
        provider.behaviour = "error"
        assert (await get(environment)).status == 503

    run(scenario)


FAILURES = {
    "silent": "sent no complete response in 10 s",
    "trickle": "sent no complete response in 10 s",
    "huge": "longer than 100000 bytes",
    "endless": "longer than 100000 bytes",
    "redirect": "a redirect",
    "cut": "closed before the response was complete",
    "reset": "connection",
}


@pytest.mark.parametrize(("behaviour", "reason"), FAILURES.items(), ids=FAILURES.keys())
def test_a_server_that_misbehaves_is_given_up(behaviour: str, reason: str) -> None:
    async def scenario(environment: Environment, provider: Provider) -> None:
        provider.behaviour = behaviour
        started = environment.clock.monotonic()
        with pytest.raises(HttpFailed, match=reason):
            await get(environment)
        assert environment.clock.monotonic() - started < 11
        assert provider.asked == ["/jwks"], "a redirect is not followed"

    run(scenario)


def test_a_server_that_is_gone() -> None:
    async def scenario(environment: Environment, provider: Provider) -> None:
        with pytest.raises(HttpFailed, match="no connection to localhost:8081"):
            await get(environment, port=8081)

    run(scenario)


ANSWERS = {
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not HTTP/1"),
    "headers without end": (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 10_000, "headers are longer"),
    "negative length": (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "length is malformed"),
    "length of many digits": (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", "malformed"),
    "length with a sign": (b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n12345", "malformed"),
    "chunk of no length": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "malformed"),
    "chunk without end": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 2000, "malformed"),
    "chunk too long": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", "longer than"),
    "many chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 10_001,
        "more than 10000 chunks",
    ),
    "compressed": (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", "compressed"),
    "nothing": (b"", "closed before"),
}


@pytest.mark.parametrize(("data", "reason"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_that_is_malformed(data: bytes, reason: str) -> None:
    class Server(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.write(data)
            transport.close()

    async def scenario(environment: Environment, provider: Provider) -> None:
        await environment.network.listen(Server, host="", port=8081)
        with pytest.raises(HttpFailed, match=reason):
            await get(environment, port=8081)

    run(scenario)
