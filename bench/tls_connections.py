"""Connections over TLS, one process that opens them: memory of idle ones, processor time of a handshake, pace.

The process's input is a JSON object of arguments, as of `bench.load`.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.load import percentile
from bench.systems.node import process_usage

SETTLE_S = 1.0


def _context(arguments: dict[str, Any]) -> ssl.SSLContext | None:
    if not arguments["is_tls"]:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(arguments["trusted"])
    return context


def _connect(arguments: dict[str, Any], context: ssl.SSLContext | None) -> socket.socket:
    connected = socket.create_connection(("127.0.0.1", arguments["port"]), timeout=30)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if context is None:
        return connected
    return context.wrap_socket(connected, server_hostname="127.0.0.1")


def _exchange(connected: socket.socket) -> None:
    """One ApiVersions request and its reply, after which both sides have what they keep for the connection."""
    header = b"\x00\x12\x00\x00\x00\x00\x00\x01\x00\x05bench"
    connected.sendall(len(header).to_bytes(4, "big") + header)
    size = int.from_bytes(_receive(connected, 4), "big")
    _receive(connected, size)


def _receive(connected: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        piece = connected.recv(count - len(received))
        if not piece:
            raise RuntimeError("the broker closed the connection")
        received += piece
    return received


@contextmanager
def _opened(arguments: dict[str, Any], count: int) -> Iterator[list[socket.socket]]:
    context = _context(arguments)
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            opened.append(_connect(arguments, context))
            _exchange(opened[-1])
        yield opened
    finally:
        for each in opened:
            each.close()


def idle(arguments: dict[str, Any]) -> dict[str, Any]:
    """What each of ``count`` idle connections adds to the broker's memory, and to its processor time to be opened."""
    with _opened(arguments, arguments["warm"]):
        pass
    time.sleep(SETTLE_S)
    before = process_usage(arguments["broker_pid"])
    with _opened(arguments, arguments["count"]):
        time.sleep(SETTLE_S)
        after = process_usage(arguments["broker_pid"])
    return {
        "bytes": (after.rss_bytes - before.rss_bytes) / arguments["count"],
        "cpu_us": (after.cpu_seconds - before.cpu_seconds) / arguments["count"] * 1e6,
    }


def pace(arguments: dict[str, Any]) -> dict[str, Any]:
    """Open ``rate`` connections a second for ``seconds``, each closed after its first reply: how long each took."""

    async def one(context: ssl.SSLContext | None, took_ms: list[float]) -> None:
        began = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", arguments["port"], ssl=context)
        header = b"\x00\x12\x00\x00\x00\x00\x00\x01\x00\x05bench"
        writer.write(len(header).to_bytes(4, "big") + header)
        size = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(size)
        took_ms.append((time.monotonic() - began) * 1000)
        writer.close()

    async def main() -> dict[str, Any]:
        context = _context(arguments)
        took_ms: list[float] = []
        started = time.monotonic()
        tasks = set()
        count = int(arguments["rate"] * arguments["seconds"])
        for number in range(count):
            await asyncio.sleep(max(0.0, started + number / arguments["rate"] - time.monotonic()))
            tasks.add(asyncio.ensure_future(one(context, took_ms)))
        await asyncio.gather(*tasks)
        took_s = time.monotonic() - started
        return {"per_second": count / took_s, "p99_ms": percentile(sorted(took_ms), 0.99)}

    return asyncio.run(main())


MODES = {"idle": idle, "pace": pace}


def main() -> None:
    arguments = json.loads(sys.stdin.readline())
    os.nice(arguments.get("nice", 0))
    print(json.dumps(MODES[arguments["mode"]](arguments)), flush=True)


if __name__ == "__main__":
    main()
