"""A small HTTP client for requests to identity providers: limited in time and size, and without redirects.

It uses the environment's network, so that it runs in the simulator too. Each request uses a new connection. Redirects
are errors, because only the configured and allowed address may be contacted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from millbeck.kernel.environment import Network
from millbeck.kernel.tls import TlsSource
from millbeck.security.oauth.access import Location

BODY_BYTES_MAX: Final = 1024 * 1024
HEAD_BYTES_MAX: Final = 32 * 1024
_HEAD_END: Final = b"\r\n\r\n"
_LINE_END: Final = b"\r\n"
_CHUNK_LINE_MAX: Final = 1024
_CHUNKS_MAX: Final = 10_000
_SIZE_DIGITS_MAX: Final = 16
_WITHOUT_BODY: Final = (204, 304)


class HttpFailed(Exception):
    """There was no usable response; the message is a clause that fits after a colon, without content of the
    response."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    connect_s: float = 10.0
    answer_s: float = 10.0
    """The timeout for the whole response."""
    bytes_max: int = BODY_BYTES_MAX


async def http_request(
    network: Network,
    location: Location,
    *,
    tls: TlsSource | None,
    limits: HttpLimits,
    form: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpAnswer:
    """GET the location, or POST a form to it. Raises `HttpFailed`."""
    exchange: _Exchange | None = None

    def make() -> _Exchange:
        nonlocal exchange
        exchange = _Exchange(limits.bytes_max)
        return exchange

    try:
        try:
            async with asyncio.timeout(limits.connect_s):
                source = tls if location.is_encrypted else None
                transport, _ = await network.connect(make, host=location.host, port=location.port, tls=source)
        except TimeoutError:
            raise HttpFailed(f"no connection to {location.host}:{location.port} in {limits.connect_s:g} s") from None
        assert exchange is not None
        transport.write(_request_text(location, form, headers or {}).encode())
        try:
            async with asyncio.timeout(limits.answer_s):
                return await exchange.answer
        except TimeoutError:
            raise HttpFailed(
                f"{location.host}:{location.port} sent no complete response in {limits.answer_s:g} s"
            ) from None
    except OSError as error:
        raise HttpFailed(f"no connection to {location.host}:{location.port}: {error.strerror or error}") from error
    finally:
        if exchange is not None:
            exchange.end()


def _request_text(location: Location, form: str | None, headers: Mapping[str, str]) -> str:
    host = f"[{location.host}]" if ":" in location.host else location.host
    lines = [
        f"{'GET' if form is None else 'POST'} {location.target} HTTP/1.1",
        f"Host: {host}:{location.port}",
        "Accept: application/json",
        "Accept-Encoding: identity",
        "Cache-Control: no-cache",
        "Connection: close",
        "User-Agent: millbeck",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    if form is not None:
        lines.append("Content-Type: application/x-www-form-urlencoded")
        lines.append(f"Content-Length: {len(form.encode())}")
    return "\r\n".join(lines) + "\r\n\r\n" + (form or "")


class _Exchange(asyncio.Protocol):
    """Collects one response; the buffered bytes never exceed the limits plus one read."""

    def __init__(self, bytes_max: int) -> None:
        self.answer: asyncio.Future[HttpAnswer] = asyncio.get_running_loop().create_future()
        self._bytes_max = bytes_max
        self._received = bytearray()
        self._status = 0
        self._has_head = False
        self._length: int | None = None
        self._is_chunked = False
        self._chunks: list[bytes] = []
        self._chunk_bytes = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self.answer.done():
            return
        self._received += data
        try:
            self._advance()
        except HttpFailed as error:
            self._fail(error)

    def eof_received(self) -> None:
        self._ended()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None:
            self._ended()
        else:
            self._fail(HttpFailed(f"the connection was lost: {exc}"))

    def end(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        if not self.answer.cancel() and not self.answer.cancelled():
            # Marked as retrieved, even if nobody waited for it.
            self.answer.exception()

    def _advance(self) -> None:
        if not self._has_head and not self._take_head():
            return
        if self._is_chunked:
            self._take_chunks()
        elif len(self._received) > self._bytes_max:
            raise self._too_long()
        elif self._length is not None and len(self._received) >= self._length:
            self._done(bytes(self._received[: self._length]))

    def _take_head(self) -> bool:
        end = self._received.find(_HEAD_END)
        if end < 0:
            if len(self._received) > HEAD_BYTES_MAX:
                raise HttpFailed(f"the response's headers are longer than {HEAD_BYTES_MAX} bytes")
            return False
        status_line, *lines = bytes(self._received[:end]).decode("latin-1").split("\r\n")
        del self._received[: end + len(_HEAD_END)]
        version, _, rest = status_line.partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise HttpFailed("the response is not HTTP/1")
        self._status = int(rest[:3])
        if 300 <= self._status < 400:
            raise HttpFailed(
                f"the response is a redirect ({self._status}), which is not followed: set the final address"
            )
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        self._take_framing(headers)
        self._has_head = True
        return True

    def _take_framing(self, headers: Mapping[str, str]) -> None:
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise HttpFailed("the response is compressed, which was not requested")
        self._is_chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        length = headers.get("content-length")
        if self._status in _WITHOUT_BODY:
            self._length = 0
        elif not self._is_chunked and length is not None:
            self._length = _size(length, 10)
            if self._length > self._bytes_max:
                raise self._too_long()

    def _take_chunks(self) -> None:
        while True:
            end = self._received.find(_LINE_END)
            if end < 0:
                if len(self._received) > _CHUNK_LINE_MAX:
                    raise HttpFailed("the response's chunks are malformed")
                return
            size = _size(bytes(self._received[:end]).decode("latin-1").partition(";")[0].strip(), 16)
            self._check_chunk(size)
            begin = end + len(_LINE_END)
            if size == 0:
                self._done(b"".join(self._chunks))
                return
            if len(self._received) < begin + size + len(_LINE_END):
                return
            self._chunks.append(bytes(self._received[begin : begin + size]))
            self._chunk_bytes += size
            del self._received[: begin + size + len(_LINE_END)]

    def _check_chunk(self, size: int) -> None:
        if self._chunk_bytes + size > self._bytes_max:
            raise self._too_long()
        if len(self._chunks) >= _CHUNKS_MAX:
            raise HttpFailed(f"the response has more than {_CHUNKS_MAX} chunks")

    def _ended(self) -> None:
        """Handle the end of the connection, which also ends a response without a length."""
        if self.answer.done():
            return
        if self._has_head and not self._is_chunked and self._length is None:
            self._done(bytes(self._received))
        else:
            self._fail(HttpFailed("the connection was closed before the response was complete"))

    def _done(self, body: bytes) -> None:
        if not self.answer.done():
            self.answer.set_result(HttpAnswer(self._status, body))

    def _fail(self, error: HttpFailed) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def _too_long(self) -> HttpFailed:
        return HttpFailed(f"the response is longer than {self._bytes_max} bytes")


def _size(text: str, base: int) -> int:
    digits = "0123456789abcdef"[:base]
    if not text or len(text) > _SIZE_DIGITS_MAX or any(each not in digits for each in text.lower()):
        raise HttpFailed("the response's length is malformed")
    return int(text, base)
