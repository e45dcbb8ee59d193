"""Sends a request on to the worker that has to answer it, over a connection of its own."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from millbeck.pipeline.connect.rest.answers import RestError

FORWARDED_HEADER: Final = "x-millbeck-forwarded"
"""Marks a request that was sent on: it is not sent on again."""
_TIMEOUT_SECONDS: Final = 90.0
_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_HEAD_BYTES_MAX: Final = 64 * 1024
_PORT: Final = 80


class ForwardedRequest(NamedTuple):
    method: str
    target: str
    body: bytes


class Forwarded(NamedTuple):
    """The other worker's answer."""

    status: int
    body: bytes
    location: str | None


async def forward(url: str, request: ForwardedRequest) -> Forwarded:
    """Raises `RestError` when the other worker does not answer."""
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return await _exchange(url, request)
    except (OSError, EOFError, ValueError, KeyError, asyncio.LimitOverrunError, TimeoutError) as error:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error)
        raise RestError(
            500,
            f"the worker {url}, which has to do this, did not answer: {reason}. Is that address reachable from here"
            " (rest.advertised.host.name, rest.advertised.port)?",
        ) from error


async def _exchange(url: str, request: ForwardedRequest) -> Forwarded:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORT
    stream, sink = await asyncio.open_connection(host, port, limit=_HEAD_BYTES_MAX)
    try:
        head = (
            f"{request.method} {request.target} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(request.body)}\r\nConnection: close\r\n{FORWARDED_HEADER}: true\r\n\r\n"
        )
        sink.write(head.encode("latin-1") + request.body)
        await sink.drain()
        status_line, *lines = (await stream.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= _ANSWER_BYTES_MAX:
            raise ValueError("the answer is too long")
        return Forwarded(int(status_line.split(" ")[1]), await stream.readexactly(length), headers.get("location"))
    finally:
        sink.close()
