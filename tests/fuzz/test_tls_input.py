"""Hostile TLS input at a listening socket: each connection ends, and nothing is logged as a defect."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from typing import Any

import pytest

from millbeck.host import real_environment, tls_handshakes
from millbeck.kernel.tls import TlsFailed, TlsSettings
from tests.fixtures.authority import Authority
from tests.fuzz.tls_input import HostileClient

CONNECTIONS = 400
ABREAST = 20


class Server(asyncio.BufferedProtocol):
    """Counts what is delivered, and how connections end."""

    open = 0
    errors: list[BaseException | None] = []

    def __init__(self, environment: Any) -> None:
        self._environment = environment
        self._buffer = memoryview(bytearray(4096))

    def connection_made(self, transport: Any) -> None:
        self.stream = self._environment.network.connection_stream(transport)
        Server.open += 1

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Requests that came before the hostile part."""

    def connection_lost(self, exc: Exception | None) -> None:
        self.stream.closed()
        Server.open -= 1
        Server.errors.append(exc)


async def attack(port: int, seed: int) -> None:
    client = HostileClient(random.Random(seed))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(ConnectionError, TimeoutError):
        for _ in range(client.honest_flights):
            writer.write(client.flight())
            client.incoming.write(await asyncio.wait_for(reader.read(1 << 14), 0.1))
        writer.write(client.hostile(client.flight()))
        await writer.drain()
        while await asyncio.wait_for(reader.read(1 << 14), 0.5):
            pass
    writer.transport.abort()


def test_hostile_input_ends_its_own_connection_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_handshakes, "DEADLINE_S", 0.3)
    monkeypatch.setattr(Server, "errors", [])
    unexpected: list[dict[str, Any]] = []

    async def scenario() -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unexpected.append(context))
        environment = real_environment()
        tls = environment.network.tls_context(
            TlsSettings(is_server=True, identity=Authority().issue(), trusted=Authority().certificate_der)
        )
        bound = await environment.network.listen(lambda: Server(environment), host="127.0.0.1", port=0, tls=lambda: tls)
        abreast = asyncio.Semaphore(ABREAST)

        async def one(seed: int) -> None:
            async with abreast:
                await attack(bound.port, seed)

        async with asyncio.timeout(60):
            await asyncio.gather(*(one(seed) for seed in range(CONNECTIONS)))
            while Server.open:
                await asyncio.sleep(0.01)
        bound.close()
        return environment.network

    with caplog.at_level(logging.WARNING):
        network = asyncio.run(scenario())
    assert unexpected == []
    assert not caplog.records
    assert len(Server.errors) == CONNECTIONS
    failed = [each for each in Server.errors if isinstance(each, TlsFailed)]
    assert len(failed) > CONNECTIONS // 2
    assert len({each.failure for each in failed}) >= 3
    assert network._handshakes._deadlines == {}
    assert not network._handshakes._ready
