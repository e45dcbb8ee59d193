"""The life of a node: starts, ends, crashes, power losses, pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.kernel.environment import Environment, OpenMode
from millbeck.simulation import SimulationFailed, World
from millbeck.simulation.environment.node import ProcessEnd, SimHost


def _run(scenario: Callable[..., Any], seed: int = 1) -> Any:
    with World(seed) as world:
        return world.run(lambda environment: scenario(world, world.node("n1")), limit_s=1000)


async def _forever(environment: Environment) -> None:
    await asyncio.get_running_loop().create_future()


def test_a_main_that_returns_ends_its_process_and_counts_what_it_left_running() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def main(environment: Environment) -> None:
        tasks.append(asyncio.create_task(asyncio.sleep(1000)))

    async def scenario(world: World, node: SimHost) -> object:
        run = node.start(main)
        assert node.is_running
        ending = await run.wait()
        assert not node.is_running
        return ending, run.leftover_task_count, await run.wait()

    assert _run(scenario) == (ProcessEnd.RETURNED, 1, ProcessEnd.RETURNED)


def test_a_main_that_raises_fails_the_world_unless_it_may() -> None:
    async def main(environment: Environment) -> None:
        raise ValueError("cannot start")

    async def scenario(world: World, node: SimHost, **options: Any) -> object:
        run = node.start(main, **options)
        return await run.wait(), run.error

    with pytest.raises(SimulationFailed, match="cannot start"):
        _run(scenario)
    ending, error = _run(lambda world, node: scenario(world, node, may_fail=True))
    assert ending is ProcessEnd.RAISED
    assert str(error) == "cannot start"


@pytest.mark.parametrize("where", ["main", "task", "callback"])
def test_an_exit_is_an_orderly_end_wherever_it_is_raised(where: str) -> None:
    async def leave() -> None:
        raise SystemExit("the log cannot be written")

    tasks: list[asyncio.Task[None]] = []

    def leave_now() -> None:
        raise SystemExit("the log cannot be written")

    async def main(environment: Environment) -> None:
        if where == "main":
            await leave()
        elif where == "task":
            tasks.append(asyncio.create_task(leave()))
        else:
            asyncio.get_running_loop().call_soon(leave_now)
        await _forever(environment)

    async def scenario(world: World, node: SimHost) -> object:
        run = node.start(main)
        ending = await run.wait()
        node.start(_forever)
        return ending, str(run.error)

    assert _run(scenario) == (ProcessEnd.RAISED, "the log cannot be written")


def test_a_crash_runs_no_finally_and_leaves_the_page_cache() -> None:
    last_error_line = []

    async def main(environment: Environment) -> None:
        file = environment.files.open("/a", OpenMode.WRITE)
        file.write([b"in the cache"], 0)
        try:
            await _forever(environment)
        finally:
            last_error_line.append("finally")
            file.write([b"IN THE GRAVE"], 0)

    content: list[bytes] = []

    async def read(environment: Environment) -> None:
        content.append(environment.files.open("/a", OpenMode.READ).read(100, 0))

    async def scenario(world: World, node: SimHost) -> object:
        run = node.start(main)
        await asyncio.sleep(1)
        node.crash()
        node.crash()
        assert run.ending is ProcessEnd.CRASHED
        await asyncio.sleep(1)
        assert last_error_line == []
        await node.start(read).wait()
        assert node.run is not None
        return node.run.process.name

    assert _run(scenario) == "n1/2"
    assert content == [b"in the cache"]


def test_handles_of_an_earlier_life_never_run_in_the_next() -> None:
    ticks: list[float] = []

    async def main(environment: Environment) -> None:
        life = len(ticks)
        ticks.append(0)
        while True:
            await asyncio.sleep(1)
            ticks[life] += 1

    async def scenario(world: World, node: SimHost) -> object:
        node.start(main)
        await asyncio.sleep(5.5)
        node.crash()
        node.start(main)
        await asyncio.sleep(10.5)
        return list(ticks)

    assert _run(scenario) == [5, 10]


def test_power_loss_keeps_what_was_synced_only() -> None:
    async def main(environment: Environment) -> None:
        files = environment.files
        files.make_directory("/d")
        files.sync_directory("/")
        for name in ("synced", "unsynced"):
            file = files.open(f"/d/{name}", OpenMode.WRITE)
            file.write([b"x"], 0)
            if name == "synced":
                await environment.threads.run(file.sync)
                await environment.threads.run(files.sync_directory, "/d")
        await _forever(environment)

    async def scenario(world: World, node: SimHost) -> object:
        node.start(main)
        await asyncio.sleep(1)
        node.power_loss(survival=0.0)
        assert node.run is not None
        return node.run.ending, node.disk.mount().names("/d")

    assert _run(scenario) == (ProcessEnd.LOST_POWER, ["synced"])


def test_a_paused_process_does_nothing_and_then_catches_up() -> None:
    ticks: list[float] = []

    async def main(environment: Environment) -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(environment.clock.monotonic())

    async def scenario(world: World, node: SimHost) -> object:
        node.start(main)
        await asyncio.sleep(2.5)
        node.pause(10)
        await asyncio.sleep(9)
        before = len(ticks)
        await asyncio.sleep(3)
        return before, len(ticks)

    assert _run(scenario) == (2, 4)


def test_a_paused_process_that_is_killed_stays_dead() -> None:
    ticks: list[float] = []

    async def main(environment: Environment) -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(1)

    async def scenario(world: World, node: SimHost) -> object:
        node.start(main)
        await asyncio.sleep(1.5)
        node.pause(5)
        await asyncio.sleep(2)
        node.crash()
        await asyncio.sleep(20)
        return len(ticks)

    assert _run(scenario) == 1


def test_one_process_at_a_time() -> None:
    async def scenario(world: World, node: SimHost) -> object:
        node.start(_forever)
        with pytest.raises(RuntimeError, match="already running"):
            node.start(_forever)
        return True

    assert _run(scenario)


def test_each_life_has_its_own_randomness_and_the_machine_its_clock() -> None:
    drawn = []

    async def main(environment: Environment) -> None:
        drawn.append((environment.randomness.uuid(), environment.clock))

    async def scenario(world: World, node: SimHost) -> None:
        await node.start(main).wait()
        await node.start(main).wait()

    _run(scenario)
    assert drawn[0][0] != drawn[1][0]
    assert drawn[0][1] is drawn[1][1]
    _run(scenario)
    assert drawn[2][0] == drawn[0][0]
