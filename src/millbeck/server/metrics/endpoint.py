"""``/metrics`` over plain HTTP, on the node's own loop and without a dependency.

Just enough of HTTP/1.1 for a scraper and a curious person: GET and HEAD, one small request at a time, keep-alive. A
request that is too long, or none within the deadline, ends the connection. The page is made in parts, with a turn of
the loop for everybody else between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, cast

from millbeck.kernel.environment import Listening, Network
from millbeck.kernel.metrics import CONTENT_TYPE

REQUEST_BYTES_MAX: Final = 16 * 1024
IDLE_SECONDS_MAX: Final = 60.0
CONNECTIONS_MAX: Final = 100
INDEX: Final = "millbeck: metrics are at /metrics\n"


class Page:
    """One that is being made, and how it is to be sent."""

    __slots__ = ("closes", "done", "is_head", "to_come")

    def __init__(self, to_come: Iterator[str], *, is_head: bool, closes: bool) -> None:
        self.to_come = to_come
        self.done: list[str] = []
        self.is_head = is_head
        self.closes = closes


class HttpConnection(asyncio.Protocol):
    def __init__(self, endpoint: MetricsEndpoint) -> None:
        self._endpoint = endpoint
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._next: asyncio.Handle | None = None
        self._page: Page | None = None
        self._is_stalled = False
        self._is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._endpoint.connections) >= CONNECTIONS_MAX:
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(0)
        self._endpoint.connections[self] = None
        self._restart_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._endpoint.connections.pop(self, None)
        for handle in (self._deadline, self._next):
            if handle is not None:
                handle.cancel()

    def pause_writing(self) -> None:
        self._is_stalled = True

    def resume_writing(self) -> None:
        self._is_stalled = False
        if self._page is None:
            self._take_request()

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._restart_deadline()
        if self._next is None:
            self._take_request()

    def _take_request(self) -> None:
        """Answer one request. The next one has its turn once the reply has left, however many have come."""
        self._next = None
        transport = self._transport
        assert transport is not None
        if self._is_stalled or transport.is_closing():
            return
        end = self._received.find(b"\r\n\r\n", 0, REQUEST_BYTES_MAX)
        if end >= 0:
            head, self._received = self._received[:end], self._received[end + 4 :]
            if not self._answer(head.decode("latin-1")):
                transport.close()
                return
            self._go_on()
        elif len(self._received) >= REQUEST_BYTES_MAX:
            self._send("431 Request Header Fields Too Large", "the request is too long\n", is_head=False, closes=True)
            transport.close()
            return
        if (len(self._received) > REQUEST_BYTES_MAX) != self._is_paused:
            self._is_paused = not self._is_paused
            (transport.pause_reading if self._is_paused else transport.resume_reading)()

    def _go_on(self) -> None:
        step = self._take_request if self._page is None else self._make_part
        self._next = asyncio.get_running_loop().call_soon(step)

    def _make_part(self) -> None:
        page, transport = self._page, self._transport
        assert page is not None
        assert transport is not None
        part = next(page.to_come, None)
        if part is not None:
            page.done.append(part)
            self._go_on()
            return
        self._page = None
        text = "".join(page.done)
        self._send("200 OK", text, content_type=CONTENT_TYPE, is_head=page.is_head, closes=page.closes)
        if page.closes:
            transport.close()
        else:
            self._go_on()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _restart_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(IDLE_SECONDS_MAX, self.close)

    def _answer(self, head: str) -> bool:
        """Answer one request; whether the connection stays."""
        request, *headers = head.split("\r\n")
        words = request.split(" ")
        closes = any(line.lower().replace(" ", "") == "connection:close" for line in headers)
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            self._send("400 Bad Request", "not an HTTP/1.1 request\n", is_head=False, closes=True)
            return False
        method, target, version = words
        closes = closes or version == "HTTP/1.0"
        path = target.partition("?")[0]
        is_head = method == "HEAD"
        if method not in ("GET", "HEAD"):
            self._send("405 Method Not Allowed", "only GET and HEAD\n", is_head=False, closes=True)
            return False
        if path == "/metrics":
            self._page = Page(self._endpoint.render(), is_head=is_head, closes=closes)
            return True
        if path == "/":
            self._send("200 OK", INDEX, is_head=is_head, closes=closes)
        else:
            self._send(
                "404 Not Found", f"there is nothing at {path[:200]}; try /metrics\n", is_head=is_head, closes=closes
            )
        return not closes

    def _send(
        self,
        status: str,
        text: str,
        *,
        content_type: str = "text/plain; charset=utf-8",
        is_head: bool,
        closes: bool,
    ) -> None:
        assert self._transport is not None
        body = text.encode()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
            f"Connection: {'close' if closes else 'keep-alive'}\r\n\r\n"
        )
        self._transport.write(head.encode("latin-1") + (b"" if is_head else body))


class MetricsEndpoint:
    def __init__(self, network: Network, render: Callable[[], Iterator[str]]) -> None:
        """``render`` makes the page, part by part."""
        self.render = render
        self.connections: dict[HttpConnection, None] = {}
        self._network = network
        self._listening: Listening | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen on ``port``, or on a free one when it is taken; the port that it became."""
        try:
            self._listening = await self._network.listen(lambda: HttpConnection(self), host=host, port=port)
        except OSError:
            self._listening = await self._network.listen(lambda: HttpConnection(self), host=host, port=0)
        return self._listening.port

    def stop(self) -> None:
        if self._listening is not None:
            self._listening.close()
        for connection in list(self.connections):
            connection.close()
