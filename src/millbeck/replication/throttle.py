"""How fast replicas that are not in sync may be copied, so that moving data leaves room for clients.

``leader.replication.throttled.replicas`` and its sibling for followers name replicas as ``partition:broker``, or all
with ``*``; the rates are a broker's. The rate is that of up to ten seconds and the present one. Who is above it is
not slowed down but left out, until enough time has passed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

SAMPLE_MS: Final = 1000
SAMPLE_COUNT: Final = 11
EVERYBODY: Final = "*"


def is_listed(entries: Sequence[str], partition_index: int, broker_id: int) -> bool:
    """Whether a topic's list of throttled replicas has this one."""
    return bool(entries) and (entries[0] == EVERYBODY or f"{partition_index}:{broker_id}" in entries)


class Throttle:
    """Counts bytes and says when it is too many. ``rate`` may change at any time."""

    __slots__ = ("_now_ms", "_rate", "_samples", "_total")

    def __init__(self, rate: Callable[[], int], now_ms: Callable[[], int]) -> None:
        """``rate`` is in bytes a second, ``now_ms`` a monotonic clock."""
        self._rate = rate
        self._now_ms = now_ms
        self._samples: deque[list[int]] = deque()
        self._total = 0

    def record(self, size_bytes: int) -> None:
        now_ms = self._now_ms()
        self._forget(now_ms)
        if not self._samples or now_ms - self._samples[-1][0] >= SAMPLE_MS:
            self._samples.append([now_ms, 0])
        self._samples[-1][1] += size_bytes
        self._total += size_bytes

    @property
    def rate_now(self) -> float:
        """Bytes a second since the oldest sample; the first second counts whole, or its first bytes were too many.

        A window counted as full from the start would let ten seconds' worth through at once, every ten seconds.
        """
        now_ms = self._now_ms()
        self._forget(now_ms)
        if not self._samples:
            return 0.0
        elapsed_ms = max(now_ms - self._samples[0][0], SAMPLE_MS)
        return self._total * 1000 / elapsed_ms

    @property
    def is_exceeded(self) -> bool:
        return self.rate_now > self._rate()

    def _forget(self, now_ms: int) -> None:
        while self._samples and now_ms - self._samples[0][0] >= SAMPLE_COUNT * SAMPLE_MS:
            self._total -= self._samples.popleft()[1]
