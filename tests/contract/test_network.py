"""What every network promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from millbeck.kernel.environment import Environment

if TYPE_CHECKING:
    from tests.contract.conftest import Machine


class Recorder(asyncio.Protocol):
    """Keeps what happens to one connection and wakes whoever waits for it."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.events: list[str] = []
        self.error: Exception | None = None
        self.changed = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._happened("made")

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.changed.set()

    def eof_received(self) -> None:
        self._happened("eof")

    def connection_lost(self, error: Exception | None) -> None:
        self.error = error
        self._happened("lost")

    def _happened(self, event: str) -> None:
        self.events.append(event)
        self.changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()


class BufferedRecorder(asyncio.BufferedProtocol):
    """The same through a receive buffer of its own, smaller than what is sent."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.buffer = bytearray(1000)
        self.changed = asyncio.Event()

    def get_buffer(self, sizehint: int) -> memoryview:
        # A view, not the bytearray itself: asyncio's TLS layer slices it and would read into a copy.
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]
        self.changed.set()


async def _joined(machine: Machine, environment: Environment, make_server: Callable[[], Any] = Recorder) -> Any:
    servers = []

    def make() -> Any:
        servers.append(make_server())
        return servers[-1]

    listening = await environment.network.listen(make, host=machine.host, port=0, tls=machine.server_tls)
    _, client = await environment.network.connect(
        Recorder, host=machine.host, port=listening.port, tls=machine.client_tls
    )
    while not servers or (make_server is Recorder and "made" not in servers[0].events):
        await asyncio.sleep(0.001)
    return listening, servers[0], client


def test_port_0_becomes_a_real_port_and_bytes_go_both_ways(connecting_machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        listening, server, client = await _joined(connecting_machine, environment)
        client.transport.write(b"question")
        await server.until(lambda: server.received == b"question")
        server.transport.write(b"answer")
        await client.until(lambda: client.received == b"answer")
        return listening.port, client.transport.get_extra_info("peername")[1]

    port, dialled = connecting_machine.run(scenario)
    assert port == dialled > 0


def test_a_buffered_protocol_gets_everything_in_order(connecting_machine: Machine) -> None:
    sent = bytes(range(256)) * 200

    async def scenario(environment: Environment) -> object:
        _, server, client = await _joined(connecting_machine, environment, BufferedRecorder)
        client.transport.write(sent)
        while len(server.received) < len(sent):
            server.changed.clear()
            await server.changed.wait()
        return bytes(server.received)

    assert connecting_machine.run(scenario) == sent


def test_close_is_seen_as_an_end_and_then_as_a_loss(connecting_machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        _, server, client = await _joined(connecting_machine, environment)
        client.transport.write(b"last words")
        client.transport.close()
        await server.until(lambda: "lost" in server.events)
        await client.until(lambda: "lost" in client.events)
        return bytes(server.received), server, client

    received, server, client = connecting_machine.run(scenario)
    assert received == b"last words"
    assert server.events == ["made", "eof", "lost"]
    assert server.error is None
    assert client.error is None


def test_abort_ends_both_sides(connecting_machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        _, server, client = await _joined(connecting_machine, environment)
        client.transport.abort()
        assert client.transport.is_closing()
        await client.until(lambda: "lost" in client.events)
        await server.until(lambda: "lost" in server.events)
        return True

    assert connecting_machine.run(scenario)


def test_a_paused_reader_gets_nothing_until_it_resumes(connecting_machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        _, server, client = await _joined(connecting_machine, environment)
        server.transport.pause_reading()
        await asyncio.sleep(0.01)
        client.transport.write(b"later")
        await asyncio.sleep(0.05)
        before = bytes(server.received)
        server.transport.resume_reading()
        await server.until(lambda: server.received == b"later")
        return before

    assert connecting_machine.run(scenario) == b""


def test_nobody_listening_refuses(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        listening = await environment.network.listen(Recorder, host=machine.host, port=0)
        listening.close()
        await asyncio.sleep(0.01)
        with pytest.raises(ConnectionRefusedError):
            await environment.network.connect(Recorder, host=machine.host, port=listening.port)
        return True

    assert machine.run(scenario)


def test_a_port_is_never_shared(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        listening = await environment.network.listen(Recorder, host=machine.host, port=0)
        with pytest.raises(OSError, match=r"in use|taken"):
            await environment.network.listen(Recorder, host=machine.host, port=listening.port)
        listening.close()
        again = await environment.network.listen(Recorder, host=machine.host, port=listening.port)
        again.close()
        return again.port == listening.port

    assert machine.run(scenario)


def test_closing_the_listener_keeps_open_connections(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        listening, server, client = await _joined(machine, environment)
        listening.close()
        await asyncio.sleep(0.01)
        client.transport.write(b"still here")
        await server.until(lambda: server.received == b"still here")
        return True

    assert machine.run(scenario)


def test_every_interface_is_bound_when_none_is_named(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        listening = await environment.network.listen(Recorder, host="", port=0)
        transport, _ = await environment.network.connect(Recorder, host="127.0.0.1", port=listening.port)
        address = transport.get_extra_info("sockname")
        transport.abort()
        listening.close()
        return address[0]

    assert machine.run(scenario) == "127.0.0.1"


def test_many_connections_at_once(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        made = []

        def make() -> Any:
            made.append(Recorder())
            return made[-1]

        listening = await environment.network.listen(make, host=machine.host, port=0)
        clients = await asyncio.gather(
            *(environment.network.connect(Recorder, host=machine.host, port=listening.port) for _ in range(50))
        )
        for number, (transport, _) in enumerate(clients):
            transport.write(b"%02d" % number)
        while len(made) < 50 or not all(len(server.received) == 2 for server in made):
            await asyncio.sleep(0.001)
        for transport, _ in clients:
            transport.abort()
        listening.close()
        return sorted(bytes(server.received) for server in made)

    assert machine.run(scenario) == [b"%02d" % number for number in range(50)]


def test_a_host_knows_a_name_by_which_it_is_reached(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        network = environment.network
        listening = await network.listen(Recorder, host="", port=0)
        _, client = await network.connect(Recorder, host=network.host_name(), port=listening.port)
        assert isinstance(client, Recorder)
        client.transport.close()
        listening.close()
        return client.events

    assert machine.run(scenario)[0] == "made"


def test_connections_wait_while_accepting_is_paused(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        made: list[Any] = []
        seen: list[int] = []

        def make() -> Any:
            made.append(Recorder())
            if len(made) == 2:
                listening.pause()  # before the next one is accepted
            return made[-1]

        listening = await environment.network.listen(make, host=machine.host, port=0)
        clients = await asyncio.gather(
            *(environment.network.connect(Recorder, host=machine.host, port=listening.port) for _ in range(5))
        )
        for transport, _ in clients:
            transport.write(b"x")
        for _ in range(2):
            await asyncio.sleep(0.05)
            seen.append(len(made))
            listening.resume()
        while len(made) < 5 or not all(server.received == b"x" for server in made):
            await asyncio.sleep(0.001)
        listening.pause()
        listening.close()
        listening.resume()
        for transport, _ in clients:
            transport.abort()
        return seen

    assert machine.run(scenario) == [2, 5]
