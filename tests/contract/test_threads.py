"""What every pool of threads promises."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

import pytest

from millbeck.kernel.environment import Environment

if TYPE_CHECKING:
    from tests.contract.conftest import Machine


def test_a_job_gets_its_arguments_and_its_result_is_awaited(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        return await environment.threads.run(lambda one, two: one + two, 2, 3)

    assert machine.run(scenario) == 5


def test_a_jobs_exception_is_raised_where_it_is_awaited(machine: Machine) -> None:
    def job() -> None:
        raise OSError(5, "broken")

    async def scenario(environment: Environment) -> object:
        with pytest.raises(OSError, match="broken"):
            await environment.threads.run(job)
        with pytest.raises(RuntimeError):
            await environment.threads.run(next, iter(()))
        return "went on"

    assert machine.run(scenario) == "went on"


def test_the_loop_runs_on_while_jobs_do(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        jobs = [asyncio.ensure_future(environment.threads.run(pow, number, 2)) for number in range(40)]
        turns = 0
        while not all(job.done() for job in jobs):
            turns += 1
            await asyncio.sleep(0.001)
        return [job.result() for job in jobs], turns

    results, turns = machine.run(scenario)
    assert results == [number**2 for number in range(40)]
    assert turns >= 1


def test_a_full_queue_refuses_instead_of_growing(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        accepted: list[Awaitable[int]] = []

        def submit() -> None:
            accepted.extend(environment.threads.run(abs, -number) for number in range(100_000))

        with pytest.raises(BlockingIOError):
            submit()
        return len(accepted), sum(await asyncio.gather(*accepted))

    count, total = machine.run(scenario)
    assert 1000 <= count < 100_000
    assert total == count * (count - 1) // 2


def test_a_job_whose_awaiter_gave_up_harms_nobody(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        first = asyncio.ensure_future(environment.threads.run(abs, -1))
        first.cancel()
        second = await environment.threads.run(abs, -2)
        return first.cancelled(), second

    assert machine.run(scenario) == (True, 2)
