"""The HTTP endpoint ``/metrics``, on the node's event loop and without a dependency.

It implements the subset of HTTP/1.1 that scrapers and browsers need: GET and HEAD, one small request at a time,
keep-alive. A request that is too long, or an idle timeout, closes the connection. The response is rendered and sent in
parts (chunked transfer coding): one part per event loop iteration over all connections, and none for a client that has
not read what was sent. ``name[]=`` in the query selects single metrics, as in Prometheus' client libraries.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Final, cast

from millbeck.kernel.environment import BoundListener, Network
from millbeck.kernel.metrics import CONTENT_TYPE

REQUEST_BYTES_MAX: Final = 16 * 1024
IDLE_SECONDS_MAX: Final = 60.0
CONNECTIONS_MAX: Final = 100
INDEX: Final = "millbeck: metrics are at /metrics\n"


NAME_PARAMETER: Final = "name[]"

Render = Callable[[Collection[str] | None], Iterator[str]]
"""Renders the metrics with these names, or all of them, part by part."""


class ScrapeResponse:
    """A response that is being rendered and sent."""

    __slots__ = ("closes", "is_chunked", "to_come")

    def __init__(self, to_come: Iterator[str], *, is_chunked: bool, closes: bool) -> None:
        self.to_come = to_come
        self.is_chunked = is_chunked
        self.closes = closes


class HttpConnection(asyncio.Protocol):
    def __init__(self, endpoint: MetricsEndpoint) -> None:
        self._endpoint = endpoint
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._next: asyncio.Handle | None = None
        self._page: ScrapeResponse | None = None
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
        self._page = None
        for handle in (self._deadline, self._next):
            if handle is not None:
                handle.cancel()

    def pause_writing(self) -> None:
        self._is_stalled = True

    def resume_writing(self) -> None:
        self._is_stalled = False
        if self._page is None:
            self._take_request()
        else:
            self._endpoint.wants_part(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._restart_deadline()
        if self._next is None and self._page is None:
            self._take_request()
        self._bound_received()

    def _bound_received(self) -> None:
        """Pause reading while more than ``REQUEST_BYTES_MAX`` are buffered."""
        transport = self._transport
        assert transport is not None
        if not transport.is_closing() and (len(self._received) > REQUEST_BYTES_MAX) != self._is_paused:
            self._is_paused = not self._is_paused
            (transport.pause_reading if self._is_paused else transport.resume_reading)()

    def _take_request(self) -> None:
        """Answer one request. Pipelined requests wait until its response has been sent."""
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
        self._bound_received()

    def _go_on(self) -> None:
        if self._page is None:
            self._next = asyncio.get_running_loop().call_soon(self._take_request)
        elif not self._is_stalled:
            self._endpoint.wants_part(self)

    def make_part(self) -> None:
        """Render and send the next part of the response, one per event loop iteration."""
        page, transport = self._page, self._transport
        if page is None or self._is_stalled:
            return
        assert transport is not None
        part = next(page.to_come, None)
        if part is None:
            self._page = None
            if page.is_chunked:
                transport.write(b"0\r\n\r\n")
            if page.closes:
                transport.close()
                return
        elif part:
            body = part.encode()
            transport.write(b"%x\r\n%b\r\n" % (len(body), body) if page.is_chunked else body)
        self._go_on()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _restart_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(IDLE_SECONDS_MAX, self.close)

    def _answer(self, head: str) -> bool:
        """Answer one request; True when the connection stays open."""
        request, *headers = head.split("\r\n")
        words = request.split(" ")
        closes = any(line.lower().replace(" ", "") == "connection:close" for line in headers)
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            self._send("400 Bad Request", "not an HTTP/1.1 request\n", is_head=False, closes=True)
            return False
        method, target, version = words
        closes = closes or version == "HTTP/1.0"
        path, _, query = target.partition("?")
        is_head = method == "HEAD"
        if method not in ("GET", "HEAD"):
            self._send("405 Method Not Allowed", "only GET and HEAD\n", is_head=False, closes=True)
            return False
        if path == "/metrics":
            # An HTTP/1.0 client does not support chunks: closing the connection ends its response.
            is_chunked = version != "HTTP/1.0"
            self._send_head("200 OK", CONTENT_TYPE, None, is_chunked=is_chunked, closes=closes)
            if is_head:
                return not closes
            self._page = ScrapeResponse(self._endpoint.render(_names_in(query)), is_chunked=is_chunked, closes=closes)
            return True
        if path == "/":
            self._send("200 OK", INDEX, is_head=is_head, closes=closes)
        else:
            self._send("404 Not Found", f"no page at {path[:200]}; try /metrics\n", is_head=is_head, closes=closes)
        return not closes

    def _send(self, status: str, text: str, *, is_head: bool, closes: bool) -> None:
        assert self._transport is not None
        body = text.encode()
        self._send_head(status, "text/plain; charset=utf-8", len(body), closes=closes)
        if not is_head:
            self._transport.write(body)

    def _send_head(
        self, status: str, content_type: str, length: int | None, *, is_chunked: bool = False, closes: bool
    ) -> None:
        assert self._transport is not None
        lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}"]
        if length is not None:
            lines.append(f"Content-Length: {length}")
        elif is_chunked:
            lines.append("Transfer-Encoding: chunked")
        lines.append(f"Connection: {'close' if closes else 'keep-alive'}")
        self._transport.write("\r\n".join([*lines, "", ""]).encode("latin-1"))


def _names_in(query: str) -> frozenset[str] | None:
    """The metric names in a query; None when it has none."""
    if not query:
        return None
    from urllib.parse import parse_qsl

    names = [value for name, value in parse_qsl(query, keep_blank_values=True) if name == NAME_PARAMETER]
    return frozenset(names) if names else None


class MetricsEndpoint:
    def __init__(self, network: Network, render: Render) -> None:
        self.render = render
        self.connections: dict[HttpConnection, None] = {}
        self._waiting: deque[HttpConnection] = deque()
        """Connections that wait to render the next part of their response, each at most once."""
        self._network = network
        self._listening: BoundListener | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen on ``port``, or on a free port when it is in use; returns the actual port."""
        try:
            self._listening = await self._network.listen(lambda: HttpConnection(self), host=host, port=port)
        except OSError:
            self._listening = await self._network.listen(lambda: HttpConnection(self), host=host, port=0)
        return self._listening.port

    def wants_part(self, connection: HttpConnection) -> None:
        """Queue the connection; its `make_part` is called in one of the next event loop iterations."""
        self._waiting.append(connection)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._make_part)

    def _make_part(self) -> None:
        try:
            self._waiting[0].make_part()
        finally:
            self._waiting.popleft()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._make_part)

    def stop(self) -> None:
        if self._listening is not None:
            self._listening.close()
        for connection in list(self.connections):
            connection.close()
