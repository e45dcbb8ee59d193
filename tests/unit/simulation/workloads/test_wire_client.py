"""The test client pairs replies with requests in order, and tells who waits when its connection is gone."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, cast

import pytest

from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire import codec
from millbeck.wire.framing import response_prefix
from millbeck.wire.messages.classic_groups import HeartbeatRequest, HeartbeatResponse
from millbeck.wire.messages.metadata import ApiVersionsRequest, ApiVersionsResponse


class Transport:
    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.is_closed = True


def connected() -> tuple[WireClient, Transport]:
    client, transport = WireClient(), Transport()
    client.connection_made(cast(Any, transport))
    return client, transport


def reply(api_key: int, version: int, correlation_id: int, response: Any) -> bytes:
    body = codec.encoder(type(response), version)(response)
    return response_prefix(api_key, version, correlation_id, len(body)) + body


def test_replies_are_paired_in_order_however_they_are_cut() -> None:
    async def scenario() -> None:
        client, transport = connected()
        first = client.send(ApiVersionsRequest("a", "1"), 3)
        second = client.send(HeartbeatRequest("g", 1, "m"), 3)
        assert [struct.unpack_from(">hhi", data, 4) for data in transport.written] == [(18, 3, 1), (12, 3, 2)]
        stream = reply(18, 3, 1, ApiVersionsResponse()) + reply(12, 3, 2, HeartbeatResponse(error_code=27))
        for position in range(len(stream)):
            client.data_received(stream[position : position + 1])
        assert (await first).error_code == 0
        assert (await second).error_code == 27

    asyncio.run(scenario())


def test_a_reply_out_of_order_is_noticed() -> None:
    async def scenario() -> None:
        client, _ = connected()
        client.send(HeartbeatRequest("g", 1, "m"), 3)
        with pytest.raises(AssertionError, match="out of order"):
            client.data_received(reply(12, 3, 9, HeartbeatResponse()))

    asyncio.run(scenario())


def test_a_lost_connection_ends_every_wait_and_later_sends() -> None:
    async def scenario() -> None:
        client, _ = connected()
        waiting = client.send(HeartbeatRequest("g", 1, "m"), 3)
        client.connection_lost(None)
        with pytest.raises(ConnectionError):
            await waiting
        with pytest.raises(ConnectionError):
            await client.ask(HeartbeatRequest("g", 1, "m"), 3)
        assert client.is_lost

    asyncio.run(scenario())
