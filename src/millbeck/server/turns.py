"""Long work on the loop, cut into short turns so that the others have theirs in between."""

from __future__ import annotations

import asyncio
from typing import Final

from millbeck.kernel.environment import Clock

TURN_SECONDS: Final = 0.005


class Turns:
    """One piece of long work, from now on: call `give_way` after each small part of it."""

    __slots__ = ("_clock", "_ends_at")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends_at = clock.monotonic() + TURN_SECONDS

    async def give_way(self) -> None:
        """Let the loop go round when the turn has lasted long enough; what the work relies on may change meanwhile."""
        if self._clock.monotonic() >= self._ends_at:
            await asyncio.sleep(0)
            self._ends_at = self._clock.monotonic() + TURN_SECONDS
