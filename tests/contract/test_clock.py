"""What every clock promises."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millbeck.kernel.environment import Environment

if TYPE_CHECKING:
    from tests.contract.conftest import Machine


def test_the_monotonic_clock_is_the_loops_and_moves_with_it(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        loop_before, clock_before = asyncio.get_running_loop().time(), environment.clock.monotonic()
        wall_before = environment.clock.wall_ms()
        await asyncio.sleep(0.02)
        return (
            clock_before - loop_before,
            environment.clock.monotonic() - clock_before,
            environment.clock.wall_ms() - wall_before,
        )

    difference, passed, wall_passed = machine.run(scenario)
    assert 0 <= difference < 0.1
    assert 0.019 <= passed < 5
    assert 15 <= wall_passed < 5000
