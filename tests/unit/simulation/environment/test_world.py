"""A whole world: the same seed gives the same run, and failures say how to get them again."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from millbeck.kernel.environment import Environment, OpenMode
from millbeck.simulation import SimulationFailed, World, WorldOptions
from millbeck.simulation.environment.loop import SimulationStuck

PROGRAM = """
import asyncio, sys
from millbeck.simulation import World, WorldOptions
from millbeck.kernel.environment import OpenMode

class Echo(asyncio.Protocol):
    def __init__(self, environment, file):
        self.environment, self.file, self.end = environment, file, file.size()
    def connection_made(self, transport):
        self.stream = self.environment.network.connection_stream(transport)
    def data_received(self, data):
        self.file.write([data], self.end)
        self.end += len(data)
        self.stream.send([data])
    def resume_writing(self):
        self.stream.resume_writing()
    def connection_lost(self, error):
        self.stream.closed()

async def serve(environment):
    file = environment.files.open("/log", OpenMode.WRITE)
    await environment.network.listen(lambda: Echo(environment, file), host="", port=9092)
    while True:
        await asyncio.sleep(0.05)
        await environment.threads.run(file.sync)

async def client(host, count):
    for attempt in range(100):
        try:
            reader, writer = await asyncio.open_connection(host, 9092)
            for number in range(count):
                writer.write(b"%d" % number)
                async with asyncio.timeout(2):
                    await reader.readexactly(len(b"%d" % number))
                await asyncio.sleep(0.005)
            return attempt
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.05)

def digest(seed):
    world = World(seed, WorldOptions.drawn(seed))
    nodes = [world.node(name) for name in ("n1", "n2", "n3")]
    async def scenario(environment):
        for node in nodes:
            node.start(serve)
        async with asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(client(nodes[number % 3].name, 40))
            await asyncio.sleep(0.05)
            nodes[0].crash()
            nodes[1].pause(0.3)
            world.network.partition(["harness"], ["n3"])
            await asyncio.sleep(0.2)
            nodes[0].start(serve)
            nodes[1].power_loss()
            await asyncio.sleep(0.2)
            world.network.heal()
            nodes[1].start(serve)
    with world:
        world.run(scenario, limit_s=600)
        return f"{world.trace.digest()} {world.trace.event_count} {world.loop.callback_count}"

if __name__ == "__main__":
    print(digest(int(sys.argv[1])))
"""


def _digest_in_another_process(seed: int, hash_seed: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seed)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return finished.stdout.strip()


def test_the_same_seed_gives_the_same_digest_in_every_process() -> None:
    names: dict[str, Any] = {"__name__": "program"}
    exec(PROGRAM, names)
    digest = names["digest"]
    here = digest(3)
    assert digest(3) == here
    assert digest(4) != here
    assert int(here.split()[1]) > 200
    assert {_digest_in_another_process(3, hash_seed) for hash_seed in ("0", "1", "random")} == {here}


async def _forever(environment: Environment) -> None:
    await asyncio.get_running_loop().create_future()


def test_a_failing_run_says_how_to_get_it_again() -> None:
    async def scenario(environment: Environment) -> None:
        raise AssertionError("the invariant")

    options = WorldOptions.drawn(99)
    with World(99, options) as world, pytest.raises(AssertionError, match="the invariant") as caught:
        world.run(scenario, limit_s=10)
    note = caught.value.__notes__[-1]
    assert "seed=99" in note
    assert repr(options) in note
    assert world.trace.digest() in note


def test_an_exception_nobody_waited_for_fails_the_run() -> None:
    async def fail() -> None:
        raise ValueError("forgotten")

    async def scenario(environment: Environment) -> None:
        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        del task

    def callback_fails() -> None:
        raise ValueError("in a callback")

    async def other(environment: Environment) -> None:
        asyncio.get_running_loop().call_soon(callback_fails)
        await asyncio.sleep(1)

    with World(1) as world, pytest.raises(SimulationFailed, match="in a callback"):
        world.run(other, limit_s=10)
    with World(1) as world:
        world.harness_run.process._sweep_at = 0
        with pytest.raises(SimulationFailed, match="forgotten"):
            world.run(lambda environment: _sweep(scenario, environment), limit_s=10)


async def _sweep(scenario: Callable[..., Any], environment: Environment) -> None:
    await scenario(environment)
    for _ in range(200):
        await asyncio.create_task(asyncio.sleep(0))


def test_failures_elsewhere_are_noted_when_the_scenario_fails_first() -> None:
    async def main(environment: Environment) -> None:
        raise ValueError("the real cause")

    async def scenario(environment: Environment) -> None:
        world.node("n1").start(main)
        await asyncio.sleep(1)
        raise ConnectionError("a consequence")

    with World(1) as world, pytest.raises(ConnectionError) as caught:
        world.run(scenario, limit_s=10)
    assert any("the real cause" in note for note in caught.value.__notes__)


def test_a_run_that_never_ends_is_stopped() -> None:
    with World(1) as world, pytest.raises(SimulationStuck):
        world.run(lambda environment: asyncio.sleep(100), limit_s=10)


def test_time_goes_on_between_runs() -> None:
    async def scenario(environment: Environment) -> object:
        await asyncio.sleep(5)
        return environment.clock.monotonic()

    with World(1) as world:
        assert world.run(scenario, limit_s=6) == 5
        assert world.run(scenario, limit_s=6) == 10


def test_nodes_are_made_once_and_kept_in_order() -> None:
    with World(1) as world:
        assert world.node("b") is world.node("b")
        world.node("a")
        assert [node.name for node in world.nodes] == ["b", "a"]


def test_streams_of_randomness_are_apart() -> None:
    with World(5) as world:
        assert world.generator("network").random() == world.generator("network").random()
        assert world.generator("network").random() != world.generator("disk/n1").random()


def test_the_collector_is_off_during_a_run_and_restored() -> None:
    async def scenario(environment: Environment) -> object:
        return gc.isenabled()

    with World(1) as world:
        assert gc.isenabled()
        assert world.run(scenario, limit_s=1) is False
        assert gc.isenabled()


def test_the_dead_are_kept_until_the_world_is_closed_and_then_let_go() -> None:
    said: list[str] = []
    markers: list[weakref.ref[Marker]] = []

    class Marker:
        pass

    async def main(environment: Environment) -> None:
        marker = Marker()
        markers.append(weakref.ref(marker))
        try:
            await _forever(environment)
        finally:
            said.append("finally")
            environment.files.open("/grave", OpenMode.WRITE)

    async def scenario(environment: Environment) -> object:
        world.node("n1").start(main)
        await asyncio.sleep(1)
        world.node("n1").crash()
        gc.collect()
        return markers[0]() is not None, list(said)

    world = World(1)
    assert world.run(scenario, limit_s=10) == (True, [])
    world.close()
    gc.collect()
    assert markers[0]() is None
    assert world.node("n1").disk.mount().names("/") == []


def test_a_process_that_is_not_simulated_has_no_services() -> None:
    with World(1) as world, pytest.raises(RuntimeError, match="no simulated process"):
        world.run_of(None)


def test_the_last_words_of_the_dead_are_not_complained_about() -> None:
    """They may hold something to await, and begin something new, that will never run."""

    begun: list[asyncio.Task[None]] = []

    async def later() -> None:
        await asyncio.sleep(1)

    async def holds(work: Coroutine[Any, Any, None]) -> None:
        await work

    async def main(environment: Environment) -> None:
        loop = asyncio.get_running_loop()
        try:
            await asyncio.sleep(1000)
        finally:
            begun.append(loop.create_task(later()))

    async def scenario(environment: Environment) -> None:
        nodes.pop().start(main)
        await asyncio.sleep(1)
        begun.append(asyncio.get_running_loop().create_task(holds(later())))

    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        with World(seed=1) as world:
            nodes = [world.node("n1")]
            world.run(scenario, limit_s=60)
        assert len(begun) == 2
        begun.clear()
        del world
        gc.collect()
    assert [str(each.message) for each in complaints] == []
