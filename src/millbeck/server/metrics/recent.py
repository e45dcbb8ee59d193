"""Rates over a recent window, for metrics that must be a rate instead of a counter.

They are computed when the metrics are scraped, so the window depends on the scrape interval: at least half of
``WINDOW_SECONDS`` with frequent scrapes, and back to the previous scrape with rare ones. Times are in seconds of a
monotonic clock.
"""

from __future__ import annotations

from typing import Final

WINDOW_SECONDS: Final = 60.0


class RecentRate:
    """The recent growth rate of a counter, per second."""

    __slots__ = ("_earlier", "_latest")

    def __init__(self, value: float, now_s: float) -> None:
        self._earlier = self._latest = (now_s, value)

    def read(self, value: float, now_s: float) -> float:
        """Record the counter's current value and return its recent rate."""
        if now_s - self._latest[0] >= WINDOW_SECONDS / 2:
            self._earlier, self._latest = self._latest, (now_s, value)
        began_s, before = self._earlier
        return (value - before) / (now_s - began_s) if now_s > began_s else 0.0
