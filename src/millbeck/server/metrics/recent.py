"""Rates of the last while, for metrics that have to be one number instead of a counter.

They are read when metrics are asked for, so how far back they look depends on who asks: at least half a window when
asked often, and as far as the question before when asked rarely. Times are seconds of a monotonic clock.
"""

from __future__ import annotations

from typing import Final

WINDOW_SECONDS: Final = 60.0


class RecentRate:
    """How fast a counter has grown lately, in units a second."""

    __slots__ = ("_earlier", "_latest")

    def __init__(self, value: float, now_s: float) -> None:
        self._earlier = self._latest = (now_s, value)

    def read(self, value: float, now_s: float) -> float:
        """The counter's value is this by now."""
        if now_s - self._latest[0] >= WINDOW_SECONDS / 2:
            self._earlier, self._latest = self._latest, (now_s, value)
        began_s, before = self._earlier
        return (value - before) / (now_s - began_s) if now_s > began_s else 0.0
