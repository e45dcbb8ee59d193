"""A client that sends exactly the given message in the given version, on one connection.

For tests of the protocol itself, and for workloads in the simulator that must know what they sent. It has
no metadata and no retries; `millbeck.client` has those.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any, cast

from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.framing import read_response_header, request_prefix
from millbeck.wire.schema import schema_of


class WireClient(asyncio.Protocol):
    """A client with one connection. Responses arrive in the order of requests; `ask` waits for the response to its
    request.
    """

    def __init__(self) -> None:
        self.is_lost = False
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._waiting: list[tuple[int, int, int, asyncio.Future[Any]]] = []
        self._correlation_id = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        for _, _, _, future in self._waiting:
            if not future.done():
                future.set_exception(ConnectionError("connection lost"))
                # Whoever sent without waiting does not hear of it.
                future.exception()
        self._waiting.clear()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                return
            frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
            api_key, version, expected_id, future = self._waiting.pop(0)
            correlation_id, position = read_response_header(api_key, version, frame)
            assert correlation_id == expected_id, "a reply out of order"
            response, end = codec.decoder(APIS[api_key].response, version)(frame, position)
            assert end == len(frame), "bytes after the response"
            if not future.done():
                future.set_result(response)

    def send(
        self, request: Any, version: int, *, expects_reply: bool = True, client_id: str | None = "test"
    ) -> asyncio.Future[Any]:
        """Send a request without waiting; returns the future of the response."""
        api_key = schema_of(type(request)).api_key
        assert api_key is not None
        body = codec.encoder(type(request), version)(request)
        self._correlation_id += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.is_lost:
            future.set_exception(ConnectionError("connection lost"))
            future.exception()
            return future
        if expects_reply:
            self._waiting.append((api_key, version, self._correlation_id, future))
        self.write(request_prefix(api_key, version, self._correlation_id, client_id, len(body)) + body)
        return future

    def write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()

    async def ask(self, request: Any, version: int, *, client_id: str | None = "test", timeout_s: float = 60) -> Any:
        return await asyncio.wait_for(self.send(request, version, client_id=client_id), timeout_s)
