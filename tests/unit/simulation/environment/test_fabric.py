"""The wires: partitions, latency, names and ports, and what peers of the dead get to see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.simulation import NetworkOptions, World, WorldOptions
from millbeck.simulation.environment.node import SimHost
from tests.unit.simulation.environment.conftest import Listening, Recorder

Joined = Callable[..., Any]
"""Runs a scenario in a world with a connection from the harness to n1."""


def _quiet(seed: int = 1, **network: Any) -> World:
    network.setdefault("spike", 0.0)
    return World(seed, WorldOptions(network=NetworkOptions(**network)))


@pytest.fixture
def joined(listening: type[Listening], recorder: type[Recorder]) -> Joined:
    """A world with a connection from the harness to n1, handed to a scenario."""

    def run(scenario: Callable[..., Any], world: World | None = None) -> Any:
        world = world or _quiet()
        main = listening()
        node = world.node("n1")
        node.start(main)

        async def body(environment: Environment) -> object:
            await asyncio.sleep(0.01)
            _, client = await environment.network.connect(recorder, host="n1", port=9092)
            await asyncio.sleep(0.5)
            return await scenario(world, node, client, main.accepted[0], environment)

        with world:
            return world.run(body, limit_s=1000)

    return run


def test_a_cut_link_delays_and_healing_delivers_in_order(joined: Joined) -> None:
    async def scenario(
        world: World, node: SimHost, client: Recorder, server: Recorder, environment: Environment
    ) -> object:
        client.transport.write(b"one ")
        world.network.partition(["harness"], ["n1"])
        client.transport.write(b"two ")
        server.transport.write(b"back")
        await asyncio.sleep(100)
        before = (server.received, client.received, client.events)
        world.network.heal()
        client.transport.write(b"three")
        await asyncio.sleep(5)
        return before, server.received, client.received

    assert joined(scenario) == ((b"", b"", ["made"]), b"one two three", b"back")


def test_a_one_way_cut_blocks_one_way(joined: Joined) -> None:
    async def scenario(
        world: World, node: SimHost, client: Recorder, server: Recorder, environment: Environment
    ) -> object:
        world.network.partition(["harness"], ["n1"], both_ways=False)
        client.transport.write(b"lost for now")
        server.transport.write(b"arrives")
        await asyncio.sleep(10)
        return server.received, client.received

    assert joined(scenario) == (b"", b"arrives")


def test_a_slow_link_is_slow(joined: Joined) -> None:
    async def scenario(
        world: World, node: SimHost, client: Recorder, server: Recorder, environment: Environment
    ) -> object:
        world.network.slow_down("harness", "n1", 3.0)
        client.transport.write(b"x")
        await asyncio.sleep(2.9)
        before = server.received
        await asyncio.sleep(0.5)
        return before, server.received

    assert joined(scenario) == (b"", b"x")


def test_connecting_through_a_cut_retries_until_it_heals_or_gives_up(joined: Joined, recorder: type[Recorder]) -> None:
    async def scenario(
        world: World, node: SimHost, client: Recorder, server: Recorder, environment: Environment
    ) -> object:
        world.network.partition(["harness"], ["n1"])
        loop = asyncio.get_running_loop()
        loop.call_later(10, world.network.heal)
        started = loop.time()
        await environment.network.connect(recorder, host="n1", port=9092)
        healed_after = loop.time() - started
        world.network.partition(["n1"], ["harness"], both_ways=False)
        with pytest.raises(TimeoutError):
            await environment.network.connect(recorder, host="n1", port=9092)
        return healed_after, loop.time() - started

    healed_after, gave_up_after = joined(scenario)
    assert 10 < healed_after < 20
    assert 100 < gave_up_after < 300


def test_a_killed_process_says_goodbye_through_its_kernel(joined: Joined) -> None:
    async def scenario(
        world: World, node: SimHost, client: Recorder, server: Recorder, environment: Environment
    ) -> object:
        server.transport.write(b"last words")
        node.crash()
        await asyncio.sleep(1)
        return client.received, client.events[-1], server.events, world.network.connection_count()

    received, last, server_events, open_count = joined(scenario)
    assert received == b"last words"
    assert last == "lost"
    assert server_events == ["made"]  # its own code never hears of it
    assert open_count == 0


def test_a_machine_without_power_is_silent_until_it_is_back(joined: Joined, listening: type[Listening]) -> None:
    async def scenario(
        world: World, node: SimHost, client: Recorder, server: Recorder, environment: Environment
    ) -> object:
        node.power_loss()
        client.transport.write(b"hello?")
        await asyncio.sleep(60)
        before = list(client.events)
        node.start(listening())
        await asyncio.sleep(5)
        return before, client.events[-1], type(client.error)

    assert joined(scenario) == (["made"], "lost", ConnectionResetError)


def test_connections_between_two_machines_can_be_reset(joined: Joined) -> None:
    async def scenario(
        world: World, node: SimHost, client: Recorder, server: Recorder, environment: Environment
    ) -> object:
        count = world.network.reset("n1", "harness")
        await asyncio.sleep(1)
        return count, client.events[-1], server.events[-1]

    assert joined(scenario) == (1, "lost", "lost")


def test_machines_have_names_and_addresses(joined: Joined, recorder: type[Recorder]) -> None:
    async def scenario(
        world: World, node: SimHost, client: Recorder, server: Recorder, environment: Environment
    ) -> object:
        transport, _ = await environment.network.connect(recorder, host=node.address, port=9092)
        with pytest.raises(OSError, match="nowhere"):
            await environment.network.connect(recorder, host="nowhere", port=9092)
        return transport.get_extra_info("peername"), node.address, server.transport.get_extra_info("peername")

    peer, address, client_address = joined(scenario)
    assert peer == (address, 9092)
    assert client_address[0] == "10.0.0.1"


def test_a_loopback_listener_is_hidden_from_other_machines(recorder: type[Recorder]) -> None:
    world = _quiet()

    async def main(environment: Environment) -> None:
        await environment.network.listen(recorder, host="127.0.0.1", port=1234)
        await environment.network.connect(recorder, host="127.0.0.1", port=1234)
        await asyncio.get_running_loop().create_future()

    async def scenario(environment: Environment) -> object:
        world.node("n1").start(main)
        await asyncio.sleep(1)
        with pytest.raises(ConnectionRefusedError):
            await environment.network.connect(recorder, host="n1", port=1234)
        return world.network.connection_count()

    with world:
        assert world.run(scenario, limit_s=100) == 2


def test_latency_jitter_and_spikes_are_as_configured() -> None:
    def delays(**network: Any) -> list[float]:
        with World(1, WorldOptions(network=NetworkOptions(**network))) as world:
            world.node("n1")
            return [world.network.delay("harness", "n1") for _ in range(500)]

    assert set(delays(latency_s=0.001, jitter_s=0.0, spike=0.0)) == {0.001}
    jittered = delays(latency_s=0.001, jitter_s=0.01, spike=0.0)
    assert min(jittered) >= 0.001
    assert 0.005 < max(jittered) <= 0.011
    spiked = delays(latency_s=0.0, jitter_s=0.0, spike=0.1, spike_s=0.2)
    assert 20 < sum(delay > 0 for delay in spiked) < 100
