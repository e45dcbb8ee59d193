"""Jobs in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from millbeck.kernel.environment import Environment, OpenMode
from millbeck.simulation import World, WorldOptions
from millbeck.simulation.environment.disk_faults import DiskFaults


def test_a_job_takes_effect_before_its_result_arrives_by_what_it_cost() -> None:
    world = World(1, WorldOptions(disk=DiskFaults(sync_cost_s=0.5), thread_delay_s=0.0))
    seen = {}

    async def main(environment: Environment) -> None:
        loop = asyncio.get_running_loop()
        file = environment.files.open("/a", OpenMode.WRITE)

        def job() -> None:
            seen["effect"] = loop.time()
            file.sync()
            file.sync()

        seen["start"] = loop.time()
        await environment.threads.run(job)
        seen["result"] = loop.time()

    async def scenario(environment: Environment) -> None:
        await world.node("n1").start(main).wait()

    with world:
        world.run(scenario, limit_s=100)
    assert seen["effect"] == seen["start"]
    assert seen["result"] == pytest.approx(seen["effect"] + 1.0)


def test_a_slow_call_on_the_loop_holds_the_whole_process() -> None:
    world = World(1, WorldOptions(disk=DiskFaults(sync_cost_s=2.0)))
    ticks = []

    async def main(environment: Environment) -> None:
        async def tick() -> None:
            while True:
                ticks.append(environment.clock.monotonic())
                await asyncio.sleep(0.1)

        async with asyncio.TaskGroup() as group:
            ticking = group.create_task(tick())
            await asyncio.sleep(1.05)
            file = environment.files.open("/a", OpenMode.WRITE)
            file.sync()
            file.sync()
            await asyncio.sleep(0.5)
            ticking.cancel()

    async def scenario(environment: Environment) -> None:
        await world.node("n1").start(main).wait()

    with world:
        world.run(scenario, limit_s=100)
    gaps = [after - before for before, after in itertools.pairwise(ticks)]
    assert 3.9 < max(gaps) < 4.2
    assert sum(gap > 0.2 for gap in gaps) == 1


def test_jobs_overtake_each_other() -> None:
    async def scenario(environment: Environment) -> Any:
        done: list[int] = []
        await asyncio.gather(*(environment.threads.run(done.append, number) for number in range(20)))
        return done

    with World(1) as world:
        done = world.run(scenario, limit_s=10)
    assert sorted(done) == list(range(20))
    assert done != sorted(done)


def test_the_loops_own_executor_is_the_simulated_one() -> None:
    async def scenario(environment: Environment) -> object:
        started = environment.clock.monotonic()
        result = await asyncio.to_thread(pow, 2, 10)
        return result, environment.clock.monotonic() > started

    with World(1) as world:
        assert world.run(scenario, limit_s=10) == (1024, True)


def test_a_crash_between_effect_and_result() -> None:
    world = World(1, WorldOptions(disk=DiskFaults(sync_cost_s=1.0), thread_delay_s=0.0))
    node = world.node("n1")
    heard = []

    async def main(environment: Environment) -> None:
        file = environment.files.open("/a", OpenMode.WRITE)
        environment.files.sync_directory("/")
        file.write([b"durable"], 0)
        await environment.threads.run(file.sync)
        heard.append("result")

    async def scenario(environment: Environment) -> object:
        node.start(main)
        await asyncio.sleep(1.5)
        node.power_loss(survival=0.0)
        await asyncio.sleep(5)
        return bytes(node.disk.mount().open("/a", OpenMode.READ).read(10, 0))

    with world:
        assert world.run(scenario, limit_s=100) == b"durable"
    assert heard == []
