"""From frames to handlers: what is answered how, and what ends the connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidRequest, UnknownServerError
from millbeck.server.network.route import handles, handles_frames, top_level_error
from millbeck.server.requests.dispatch import Dispatcher
from millbeck.wire import codec
from millbeck.wire.framing import request_prefix
from millbeck.wire.messages.classic_groups import HeartbeatResponse
from millbeck.wire.messages.groups import ListGroupsRequest
from millbeck.wire.messages.metadata import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
)
from millbeck.wire.messages.produce import ProduceRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import run_scenario

CLUSTER = 60


def replace(harness: BrokerHarness, key: int, run: Any) -> Any:
    """Let another function handle an API; the handler."""
    assert harness.node is not None
    dispatcher = harness.node.listeners[0].requests
    assert isinstance(dispatcher, Dispatcher)
    handler = dispatcher.handlers[key]
    handler.run = run
    return handler


def unexpected(harness: BrokerHarness) -> int:
    """How many errors were counted so far; they are expected from here on."""
    assert harness.node is not None
    count, harness.node.broker.unexpected_errors = harness.node.broker.unexpected_errors, 0
    return count


async def raw(client: Client, key: int, version: int, body: bytes) -> bool:
    """Send a frame by hand; whether the connection survived it."""
    client.write(request_prefix(key, version, 1, "raw", len(body)) + body)
    await asyncio.sleep(1)
    return not client.is_lost


def test_a_plain_handler_answers_and_an_async_one_holds_the_connection() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        gate = asyncio.Event()
        order: list[str] = []

        async def slow(call: Any, request: Any) -> Any:
            order.append("slow")
            await gate.wait()
            return DescribeClusterResponse(cluster_id="slow")

        replace(harness, CLUSTER, slow)
        first = client.send(DescribeClusterRequest(), 0)
        second = client.send(ApiVersionsRequest(), 0)
        await asyncio.sleep(1)
        assert not first.done()
        assert not second.done()
        gate.set()
        assert (await first).cluster_id == "slow"
        assert (await second).error_code == 0
        assert order == ["slow"]

    run_scenario(scenario)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_refusal_becomes_the_apis_error_reply(is_async: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        def plain(call: Any, request: Any) -> Any:
            raise InvalidRequest("because")

        async def awaited(call: Any, request: Any) -> Any:
            await asyncio.sleep(0.01)
            raise InvalidRequest("because")

        replace(harness, CLUSTER, awaited if is_async else plain)
        response = await client.ask(DescribeClusterRequest(), 0)
        assert (response.error_code, response.error_message) == (InvalidRequest.code, "because")

    run_scenario(scenario)


@pytest.mark.parametrize("is_async", [False, True])
def test_anything_else_that_is_raised_is_logged_counted_and_answered(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        def plain(call: Any, request: Any) -> Any:
            raise ZeroDivisionError

        async def awaited(call: Any, request: Any) -> Any:
            await asyncio.sleep(0.01)
            raise ZeroDivisionError

        replace(harness, CLUSTER, awaited if is_async else plain)
        response = await client.ask(DescribeClusterRequest(), 0)
        assert response.error_code == UnknownServerError.code
        assert unexpected(harness) == 1
        assert "DescribeCluster version 0" in caplog.text
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0

    run_scenario(scenario)


@pytest.mark.parametrize("is_async", [False, True])
def test_an_answer_that_cannot_be_encoded_ends_the_connection_at_worst(is_async: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        def plain(call: Any, request: Any) -> Any:
            return DescribeClusterResponse(cluster_id=5)  # type: ignore[arg-type]

        async def awaited(call: Any, request: Any) -> Any:
            await asyncio.sleep(0.01)
            return plain(call, request)

        handler = replace(harness, CLUSTER, awaited if is_async else plain)
        response = await client.ask(DescribeClusterRequest(), 0)
        assert response.error_code == UnknownServerError.code
        handler.error_reply = lambda request, version, error: DescribeClusterResponse(cluster_id=5)  # type: ignore[arg-type]
        with pytest.raises(ConnectionError):
            await client.ask(DescribeClusterRequest(), 0)
        assert unexpected(harness) == 3

    run_scenario(scenario)


def test_an_api_without_an_error_reply_loses_its_connection() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handler = replace(harness, CLUSTER, lambda call, request: 1 // 0)
        handler.error_reply = lambda request, version, error: None
        with pytest.raises(ConnectionError):
            await client.ask(DescribeClusterRequest(), 0)
        assert unexpected(harness) == 1

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("key", "version"),
    [(999, 0), (-1, 0), (4, 0), (88, 0), (3, 14), (3, -1), (0, 2), (1, 3), (68, 0)],
    ids=["unknown", "negative", "removed", "not served", "too new", "below zero", "old produce", "old fetch", "later"],
)
def test_apis_and_versions_that_are_not_served_end_the_connection(key: int, version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        prefix = request_prefix(3, 0, 1, "raw", 4)
        frame = prefix[:4] + key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + prefix[8:]
        client.write(frame + bytes(4))
        await asyncio.sleep(1)
        assert client.is_lost
        other = await harness.connect(environment)
        assert (await other.ask(ApiVersionsRequest(), 0)).error_code == 0

    run_scenario(scenario)


def test_malformed_requests_end_the_connection_and_nothing_else() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for request, version in ((MetadataRequest(topics=None), 9), (ProduceRequest(), 9), (ListGroupsRequest(), 4)):
            key = {MetadataRequest: 3, ProduceRequest: 0, ListGroupsRequest: 16}[type(request)]
            body = codec.encoder(type(request), version)(request)
            victim = await harness.connect(environment)
            assert not await raw(victim, key, version, body[:-1])
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0

    run_scenario(scenario)


def test_bytes_behind_a_request_are_ignored() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        body = codec.encoder(MetadataRequest, 9)(MetadataRequest(topics=[])) + b"something else"
        client.data_received = lambda data: None  # type: ignore[method-assign]
        assert await raw(client, 3, 9, body)

    run_scenario(scenario)


def test_a_bad_header_ends_the_connection() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        # A client id that is longer than the frame.
        client.write(b"\x00\x00\x00\x0c" + b"\x00\x03\x00\x00\x00\x00\x00\x01\x7f\xff\x00\x00")
        await asyncio.sleep(1)
        assert client.is_lost

    run_scenario(scenario)


def test_routes_take_their_versions_from_the_api() -> None:
    route = handles(CLUSTER, needs=[], max_version=1)(lambda call, request: None)
    assert (route.api_key, route.min_version, route.max_version, route.advertised_min) == (CLUSTER, 0, 1, 0)
    assert not route.reads_frames
    frames = handles_frames(0, needs=[], error_reply=lambda request, version, error: None, advertised_min=0)(
        lambda call, frame, position: None
    )
    assert (frames.min_version, frames.max_version, frames.advertised_min) == (3, 13, 0)
    assert frames.reads_frames


def test_top_level_errors_carry_a_message_where_there_is_room() -> None:
    reply = top_level_error(DescribeClusterResponse)(None, 0, InvalidRequest("why"))
    assert (reply.error_code, reply.error_message) == (InvalidRequest.code, "why")
    short = top_level_error(HeartbeatResponse)(None, 0, InvalidRequest("why"))
    assert short.error_code == InvalidRequest.code
