"""Forwards a request to the leader, over a new connection."""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, NamedTuple

from millbeck.registry.election import Identity
from millbeck.registry.errors import ForwardingFailed

FORWARDED_HEADER: Final = "x-millbeck-forwarded"
"""The header of a forwarded request, which is not forwarded again."""
OFFSET_HEADER: Final = "x-millbeck-offset"
CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_HEAD_BYTES_MAX: Final = 64 * 1024


class Forwarded(NamedTuple):
    status: int
    body: bytes
    offset: int | None


async def forward(
    leader: Identity,
    method: str,
    target: str,
    body: bytes,
    *,
    authorization: str,
    tls: ssl.SSLContext | None,
    timeout_s: float,
) -> Forwarded:
    """Forward a request with the client's credentials and return the leader's answer; raises `ForwardingFailed`."""
    credentials = f"Authorization: {authorization}\r\n" if authorization else ""
    try:
        async with asyncio.timeout(timeout_s):
            return await _exchange(leader, method, target, body, credentials, tls)
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, TimeoutError) as error:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error)
        raise ForwardingFailed(
            f"the leader {leader.url} did not answer: {reason}. Is that address reachable from here (host.name, "
            "inter.instance.listener.name)?"
        ) from error


async def _exchange(
    leader: Identity, method: str, target: str, body: bytes, credentials: str, tls: ssl.SSLContext | None
) -> Forwarded:
    used = (tls or ssl.create_default_context()) if leader.scheme == "https" else None
    stream, sink = await asyncio.open_connection(leader.host, leader.port, ssl=used, limit=_HEAD_BYTES_MAX)
    try:
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: {leader.host}:{leader.port}\r\nContent-Type: {CONTENT_TYPE}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n{credentials}{FORWARDED_HEADER}: true\r\n\r\n"
        )
        sink.write(head.encode("latin-1") + body)
        await sink.drain()
        status_line, *lines = (await stream.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers["content-length"]) if "content-length" in headers else None
        if length is None or not 0 <= length <= _ANSWER_BYTES_MAX:
            raise ValueError("the answer has no length or is too long")
        offset = headers.get(OFFSET_HEADER)
        status = int(status_line.split(" ")[1])
        return Forwarded(status, await stream.readexactly(length), None if offset is None else int(offset))
    finally:
        sink.close()
