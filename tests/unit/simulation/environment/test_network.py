"""A process's door to the wires."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from millbeck.host.transport_stream import TransportStream
from millbeck.kernel.environment import Environment
from millbeck.kernel.tls import TlsContext
from millbeck.simulation import World
from tests.unit.simulation.environment.conftest import Recorder


def test_tls_is_refused_with_the_reason(recorder: type[Recorder]) -> None:
    async def scenario(environment: Environment) -> object:
        made = TlsContext(context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        with pytest.raises(NotImplementedError, match="randomness"):
            await environment.network.listen(recorder, host="", port=0, tls=lambda: made)
        with pytest.raises(NotImplementedError, match="randomness"):
            await environment.network.connect(recorder, host="127.0.0.1", port=1, tls=lambda: made)
        return True

    with World(1) as world:
        assert world.run(scenario, limit_s=10)


def test_asyncios_own_streams_run_on_the_simulated_wires() -> None:
    async def serve(environment: Environment) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                writer.write(line.upper())
                await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, port=7000)
        assert server.is_serving()
        assert server.get_loop() is asyncio.get_running_loop()
        async with server:
            await server.serve_forever()

    async def scenario(environment: Environment) -> object:
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection("n1", 7000)
        writer.writelines([b"one\n", b"two\n"])
        lines = [await reader.readline(), await reader.readline()]
        writer.close()
        await writer.wait_closed()
        addresses = await asyncio.get_running_loop().getaddrinfo("n1", 7000)
        return lines, addresses[0][4]

    with World(1) as world:
        world.node("n1").start(serve)
        assert world.run(scenario, limit_s=10) == ([b"ONE\n", b"TWO\n"], ("10.0.0.2", 7000))


def test_a_closed_server_refuses() -> None:
    async def scenario(environment: Environment) -> object:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, port=7000)
        server.close()
        await server.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", 7000)
        return server.is_serving()

    with World(1) as world:
        assert world.run(scenario, limit_s=10) is False


def test_outlets_write_through_the_transport(recorder: type[Recorder]) -> None:
    async def scenario(environment: Environment) -> object:
        listening = await environment.network.listen(recorder, host="", port=0)
        transport, _ = await environment.network.connect(recorder, host="127.0.0.1", port=listening.port)
        return environment.network.connection_stream(transport)

    with World(1) as world:
        assert isinstance(world.run(scenario, limit_s=10), TransportStream)
