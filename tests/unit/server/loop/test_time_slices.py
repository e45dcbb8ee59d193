"""Long work gives way when its turn is over, and not before."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from millbeck.server.loop.tasks import TURN_SECONDS, TimeSlices


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_the_loop_goes_round_once_for_each_turn_that_is_over() -> None:
    clock = Clock()
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    async def work() -> list[int]:
        counting = asyncio.get_running_loop().create_task(count())
        turns = TimeSlices(cast(Any, clock))
        seen = []
        for part_seconds in (0.0, TURN_SECONDS / 2, TURN_SECONDS, TURN_SECONDS / 2, 2 * TURN_SECONDS):
            clock.now += part_seconds
            await turns.yield_to_loop()
            seen.append(rounds)
        counting.cancel()
        return seen

    assert asyncio.run(work()) == [0, 0, 1, 1, 2]
