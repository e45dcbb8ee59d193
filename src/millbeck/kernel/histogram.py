"""Quantiles of recent values in small, bounded memory.

Bucket bounds grow geometrically, 32 buckets per power of two, so the error of a quantile is at most 1.1 %. Values are
limited to 2^-10 .. 2^32 (for milliseconds: a microsecond to 50 days), which bounds the number of buckets at 1,345; in
practice some fifty are used. The sliding window has three slots: quantiles cover the current slot and the two before
it. Nothing here reads a clock: `rotate` starts the next slot, and the registry calls it every 20 seconds or at the
next scrape after that. ``count`` and ``total`` cover everything since the start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import floor, log2, nan
from typing import Final

QUANTILES = (0.5, 0.75, 0.95, 0.99, 0.999)
SLOT_COUNT: Final = 3
_SMALLEST: Final = 2.0**-10
_LARGEST: Final = 2.0**32
_BUCKETS_PER_DOUBLING: Final = 32


class Histogram:
    __slots__ = ("_count_before", "_current", "_earlier", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self._count_before = 0
        self._current: dict[int, int] = {}
        self._earlier: list[dict[int, int]] = [{} for _ in range(SLOT_COUNT - 1)]

    def record(self, value: float) -> None:
        self.record_many(value, 1)

    def record_many(self, value: float, count: int) -> None:
        """Record one value ``count`` times."""
        self.total += value * count
        if not _SMALLEST <= value <= _LARGEST:
            value = _LARGEST if value > _LARGEST else _SMALLEST
        bucket = floor(log2(value) * _BUCKETS_PER_DOUBLING)
        self._current[bucket] = self._current.get(bucket, 0) + count

    @property
    def count(self) -> int:
        return self._count_before + sum(self._current.values())

    def rotate(self) -> None:
        """Start the next slot and drop the oldest."""
        self._count_before = self.count
        self._earlier = [self._current, *self._earlier[:-1]]
        self._current = {}

    def quantiles(self, wanted: Sequence[float] = QUANTILES) -> list[float]:
        """The quantiles of the window for ascending shares; NaN when the window is empty."""
        counts = Counter(self._current)
        for slot in self._earlier:
            counts.update(slot)
        window_count = counts.total()
        if window_count == 0:
            return [nan] * len(wanted)
        found: list[float] = []
        seen_count = 0
        for bucket, bucket_count in sorted(counts.items()):
            seen_count += bucket_count
            while len(found) < len(wanted) and seen_count >= wanted[len(found)] * window_count:
                found.append(2.0 ** ((bucket + 0.5) / _BUCKETS_PER_DOUBLING))
        return found
