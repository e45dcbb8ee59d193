"""Workers of the simulator: what they cost, and how they die."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import OpenMode, WorkerContext, WorkerDied
from millbeck.simulation import World
from millbeck.simulation.environment.options import WorldOptions

COUNT = 30


def write_many(place: WorkerContext, directory: str) -> str:
    for number in range(COUNT):
        file = place.files.open(f"{directory}/{number}", OpenMode.WRITE)
        file.write([b"x" * 10], 0)
        file.sync()
        file.close()
    return "all"


def rest(place: WorkerContext, seconds: float) -> float:
    before = place.monotonic()
    place.pause(seconds)
    return place.monotonic() - before


def test_a_pause_takes_its_time_and_the_loop_runs_on() -> None:
    async def scenario(environment: Any) -> tuple[float, float, int]:
        started = environment.clock.monotonic()
        handle = environment.workers.start(rest, 30.0, lambda report: None)
        turns = 0
        while not handle.result.done():
            turns += 1
            await asyncio.sleep(1)
        return handle.result.result(), environment.clock.monotonic() - started, turns

    with World(seed=1) as world:
        rested, elapsed, turns = world.run(scenario, limit_s=60)
    assert rested == pytest.approx(30.0)
    assert elapsed >= 30.0
    assert turns >= 30


def deaths(seed: int) -> tuple[bool, list[str]]:
    """Whether the worker died, and which files it left."""

    async def scenario(environment: Any) -> tuple[bool, list[str]]:
        environment.files.make_directory("/d")
        try:
            assert await environment.workers.start(write_many, "/d", lambda report: None).result == "all"
            died = False
        except WorkerDied:
            died = True
        return died, environment.files.names("/d")

    with World(seed, WorldOptions(worker_death=0.9)) as world:
        result: tuple[bool, list[str]] = world.run(scenario, limit_s=60)
        return result


def test_a_worker_dies_at_any_of_its_calls_and_what_it_did_stays() -> None:
    outcomes = [deaths(seed) for seed in range(60)]
    assert len({len(names) for died, names in outcomes if died}) > 8
    assert all(len(names) == COUNT for died, names in outcomes if not died)
    assert any(not died for died, _ in outcomes)


def test_workers_live_unless_the_world_says_otherwise() -> None:
    async def scenario(environment: Any) -> list[str]:
        environment.files.make_directory("/d")
        return [await environment.workers.start(write_many, "/d", lambda report: None).result for _ in range(5)]

    with World(seed=4) as world:
        assert world.run(scenario, limit_s=60) == ["all"] * 5
