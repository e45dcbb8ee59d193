"""Virtual clocks."""

from __future__ import annotations

import asyncio

from millbeck.kernel.environment import Environment
from millbeck.simulation import World, WorldOptions


def test_wall_clocks_start_where_told_follow_the_loop_and_jump_by_machine() -> None:
    with World(1, WorldOptions(wall_start_ms=1_000_000)) as world:
        one, other = world.node("n1"), world.node("n2")

        async def scenario(environment: Environment) -> object:
            await asyncio.sleep(2.5)
            one.jump_wall(-3_600_000)
            return one.clock.wall_ms(), other.clock.wall_ms(), environment.clock.monotonic()

        assert world.run(scenario, limit_s=10) == (1_002_500 - 3_600_000, 1_002_500, 2.5)
