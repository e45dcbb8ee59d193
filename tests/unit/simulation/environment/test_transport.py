"""One simulated connection: order, tearing, back-pressure, ends."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.simulation import NetworkOptions, World, WorldOptions
from millbeck.simulation.environment.node import SimHost
from tests.unit.simulation.environment.conftest import Listening, Recorder

SENT = bytes(range(256)) * 40


def _world(seed: int = 1, **network: Any) -> World:
    return World(seed, WorldOptions(network=NetworkOptions(**network)))


def _run(
    world: World,
    listening: type[Listening],
    recorder: type[Recorder],
    scenario: Callable[..., Any],
    main: Listening | None = None,
) -> Any:
    """Start a server on n1, connect from the harness, and hand both ends to the scenario."""
    server_main = main or listening()
    node = world.node("n1")
    node.start(server_main)

    async def body(environment: Environment) -> object:
        await asyncio.sleep(0.01)
        _, client = await environment.network.connect(recorder, host="n1", port=9092)
        await asyncio.sleep(0.5)
        return await scenario(client, server_main.accepted[0], node)

    with world:
        return world.run(body, limit_s=1000)


def test_bytes_arrive_in_order_however_they_are_torn(listening: type[Listening], recorder: type[Recorder]) -> None:
    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        for start in range(0, len(SENT), 512):
            client.transport.write(SENT[start : start + 512])
            await asyncio.sleep(0.0001)
        await asyncio.sleep(10)
        return server.received, len(server.chunks)

    torn = _run(_world(torn_delivery=0.9, spike=0.05), listening, recorder, scenario)
    whole = _run(_world(torn_delivery=0.0, spike=0.0, jitter_s=0.0), listening, recorder, scenario)
    assert torn[0] == whole[0] == SENT
    assert torn[1] > 25
    assert whole[1] == 20


def test_a_buffered_protocol_reads_once_per_callback(listening: type[Listening], recorder: type[Recorder]) -> None:
    class Small(asyncio.BufferedProtocol):
        def __init__(self) -> None:
            self.buffer, self.received = bytearray(100), bytearray()
            self.sizes: list[int] = []

        def get_buffer(self, sizehint: int) -> memoryview:
            return memoryview(self.buffer)

        def buffer_updated(self, nbytes: int) -> None:
            self.received += self.buffer[:nbytes]
            self.sizes.append(nbytes)

    async def scenario(client: Recorder, server: Any, node: SimHost) -> object:
        client.transport.write(SENT)
        await asyncio.sleep(5)
        return bytes(server.received), max(server.sizes)

    assert _run(_world(), listening, recorder, scenario, main=listening(Small)) == (SENT, 100)


def test_a_reader_that_pauses_pushes_back(listening: type[Listening], recorder: type[Recorder]) -> None:
    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        server.transport.pause_reading()
        client.transport.set_write_buffer_limits(high=2000, low=500)
        client.transport.write(b"x" * 10_000)
        assert client.transport.get_write_buffer_size() == 0
        client.transport.write(b"y" * 5000)
        assert client.transport.get_write_buffer_size() == 5000
        await asyncio.sleep(5)
        before = (list(client.events), server.received)
        server.transport.resume_reading()
        await asyncio.sleep(5)
        return before, client.events, client.transport.get_write_buffer_size(), len(server.received)

    before, events, left, received = _run(_world(socket_buffer_bytes=10_000), listening, recorder, scenario)
    assert before == (["made", "pause"], b"")
    assert events == ["made", "pause", "resume"]
    assert (left, received) == (0, 15_000)


def test_close_sends_what_is_buffered_first(listening: type[Listening], recorder: type[Recorder]) -> None:
    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        server.transport.pause_reading()
        client.transport.write(b"x" * 50_000)
        client.transport.close()
        client.transport.write(b"ignored")
        await asyncio.sleep(5)
        assert "lost" not in client.events
        server.transport.resume_reading()
        await asyncio.sleep(5)
        return len(server.received), client.events, server.events, client.error, server.error

    received, client_events, server_events, *errors = _run(
        _world(socket_buffer_bytes=10_000), listening, recorder, scenario
    )
    assert received == 50_000
    assert client_events[-1] == "lost"
    assert server_events == ["made", "eof", "lost"]
    assert errors == [None, None]


def test_abort_drops_what_the_kernel_had_not_taken(listening: type[Listening], recorder: type[Recorder]) -> None:
    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        server.transport.pause_reading()
        client.transport.write(b"x" * 50_000)
        client.transport.abort()
        await asyncio.sleep(1)
        assert client.events[-1] == "lost"
        server.transport.resume_reading()
        await asyncio.sleep(5)
        return len(server.received), server.events[-1]

    for seed in range(8):
        received, last = _run(_world(seed, socket_buffer_bytes=10_000), listening, recorder, scenario)
        assert received <= 10_000
        assert last == "lost"


def test_closing_with_unread_bytes_resets_the_peer(listening: type[Listening], recorder: type[Recorder]) -> None:
    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        server.transport.pause_reading()
        client.transport.write(b"never read")
        await asyncio.sleep(1)
        server.transport.close()
        await asyncio.sleep(1)
        return client.events, client.error

    events, error = _run(_world(), listening, recorder, scenario)
    assert events == ["made", "lost"]
    assert isinstance(error, ConnectionResetError)


def test_writing_to_a_closed_peer_is_answered_by_a_reset(listening: type[Listening], recorder: type[Recorder]) -> None:
    class Stubborn(Recorder):
        def eof_received(self) -> bool:
            return True

    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        client.transport.close()
        await asyncio.sleep(1)
        assert "lost" not in server.events
        server.transport.write(b"anybody there?")
        await asyncio.sleep(1)
        return server.events, server.error

    events, error = _run(_world(), listening, recorder, scenario, main=listening(Stubborn))
    assert events == ["made", "lost"]
    assert error is not None
    assert error.errno == errno.ECONNRESET


def test_half_a_connection_can_go_on(listening: type[Listening], recorder: type[Recorder]) -> None:
    class Answering(Recorder):
        def eof_received(self) -> bool:
            self.transport.write(b"answer to " + self.received)
            self.transport.close()
            return True

    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        client.transport.write(b"question")
        assert client.transport.can_write_eof()
        client.transport.write_eof()
        await asyncio.sleep(2)
        return client.received, client.events

    received, events = _run(_world(), listening, recorder, scenario, main=listening(Answering))
    assert received == b"answer to question"
    assert events == ["made", "eof", "lost"]


def test_a_reset_is_seen_by_a_paused_reader_when_it_writes(
    listening: type[Listening], recorder: type[Recorder]
) -> None:
    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        server.transport.pause_reading()
        client.transport.reset()
        await asyncio.sleep(1)
        assert "lost" not in server.events
        server.transport.write(b"x")
        await asyncio.sleep(1)
        return server.events[-1], client.events[-1]

    assert _run(_world(), listening, recorder, scenario) == ("lost", "lost")


def test_a_protocol_that_raises_loses_its_connection_and_fails_the_run(
    listening: type[Listening], recorder: type[Recorder]
) -> None:
    class Broken(Recorder):
        def data_received(self, data: bytes) -> None:
            raise ValueError("a bug")

    world = _world()

    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        client.transport.write(b"x")
        await asyncio.sleep(1)
        return server.events[-1], client.events[-1], world.clear_failures()

    server_last, client_last, failures = _run(world, listening, recorder, scenario, main=listening(Broken))
    assert (server_last, client_last) == ("lost", "lost")
    assert len(failures) == 1
    assert "a bug" in failures[0]


def test_random_resets_happen_when_asked_for(listening: type[Listening], recorder: type[Recorder]) -> None:
    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        for _ in range(200):
            client.transport.write(b"x")
            await asyncio.sleep(0.01)
        return client.events[-1], server.events[-1]

    assert _run(_world(reset=0.1), listening, recorder, scenario) == ("lost", "lost")


@pytest.mark.parametrize(
    ("high", "low", "expected"), [(None, None, (16 << 10, 64 << 10)), (100, None, (25, 100)), (None, 10, (10, 40))]
)
def test_write_limits_default_as_asyncio_does(
    listening: type[Listening], recorder: type[Recorder], high: int | None, low: int | None, expected: tuple[int, int]
) -> None:
    async def scenario(client: Recorder, server: Recorder, node: SimHost) -> object:
        client.transport.set_write_buffer_limits(high=high, low=low)
        return client.transport.get_write_buffer_limits()

    assert _run(_world(), listening, recorder, scenario) == expected
