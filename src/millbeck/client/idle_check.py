"""Checks whether the program has not polled for longer than ``max.poll.interval.ms``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class IdleCheck:
    """The check: every poll, and every further record of ``async for``, counts as activity."""

    def __init__(self, limit_ms: float) -> None:
        self.record_at_hand: Callable[[], object] = lambda: None
        """The last record that ``async for`` returned."""
        self._limit_s = limit_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._seen: object = None
        self._active_s = 0.0

    def polled(self) -> None:
        self._active_s = self._loop.time()

    def is_over(self) -> bool:
        at_hand = self.record_at_hand()
        if at_hand is not self._seen:
            self._seen = at_hand
            self._active_s = self._loop.time()
        return self._loop.time() - self._active_s > self._limit_s
