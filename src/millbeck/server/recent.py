"""Rates and averages of the last while, for metrics that have to be one number instead of a counter.

Both are read when metrics are asked for, so how far back they look depends on who asks: at least half a window when
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


class _Slot:
    __slots__ = ("began_s", "count", "largest", "total")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.count = 0
        self.total = 0.0
        self.largest = 0.0


class RecentValues:
    """Average and maximum of what was recorded lately; 0 when there was nothing."""

    __slots__ = ("_current", "_previous")

    def __init__(self) -> None:
        self._current = self._previous = _Slot(0.0)

    def record(self, value: float, now_s: float) -> None:
        self._advance(now_s)
        slot = self._current
        slot.count += 1
        slot.total += value
        slot.largest = max(slot.largest, value)

    def average(self, now_s: float) -> float:
        self._advance(now_s)
        count = self._current.count + self._previous.count
        return (self._current.total + self._previous.total) / count if count else 0.0

    def maximum(self, now_s: float) -> float:
        self._advance(now_s)
        return max(self._current.largest, self._previous.largest)

    def _advance(self, now_s: float) -> None:
        age_s = now_s - self._current.began_s
        if age_s >= WINDOW_SECONDS / 2 or self._current is self._previous:
            self._previous = self._current if age_s < WINDOW_SECONDS else _Slot(now_s)
            self._current = _Slot(now_s)
