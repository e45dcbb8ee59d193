"""Replication throttle: limits the rate at which out-of-sync replicas are copied, so that moving data leaves bandwidth
to clients.

``leader.replication.throttled.replicas`` and ``follower.replication.throttled.replicas`` list replicas as
``partition:broker``, or all with ``*``; the rates are per broker. The rate is measured over the last windows,
including the current one (``replication.quota.window.*``). Partitions above the rate are not slowed down but left out
of fetches until enough time has passed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

WINDOW_MS: Final = 1000
WINDOW_COUNT: Final = 11
EVERYBODY: Final = "*"


def is_listed(entries: Sequence[str], partition_index: int, broker_id: int) -> bool:
    """Whether a topic's list of throttled replicas contains this one."""
    return bool(entries) and (entries[0] == EVERYBODY or f"{partition_index}:{broker_id}" in entries)


class Throttle:
    """Measures a byte rate and compares it with ``rate``, which may be changed at any time."""

    __slots__ = ("_now_ms", "_rate", "_samples", "_total", "_window_count", "_window_ms")

    def __init__(
        self,
        rate: Callable[[], int],
        now_ms: Callable[[], int],
        *,
        window_count: int = WINDOW_COUNT,
        window_ms: int = WINDOW_MS,
    ) -> None:
        """``rate`` is in bytes per second, ``now_ms`` a monotonic clock."""
        self._rate = rate
        self._now_ms = now_ms
        self._window_count = window_count
        self._window_ms = window_ms
        self._samples: deque[list[int]] = deque()
        self._total = 0

    def record(self, size_bytes: int) -> None:
        now_ms = self._now_ms()
        self._forget(now_ms)
        if not self._samples or now_ms - self._samples[-1][0] >= self._window_ms:
            self._samples.append([now_ms, 0])
        self._samples[-1][1] += size_bytes
        self._total += size_bytes

    @property
    def rate_now(self) -> float:
        """Bytes per second since the oldest sample, over at least one whole window; otherwise the first bytes would
        always exceed the rate.

        Dividing by the time of all windows from the start would let the quota of all windows through in one burst,
        repeatedly.
        """
        now_ms = self._now_ms()
        self._forget(now_ms)
        if not self._samples:
            return 0.0
        elapsed_ms = max(now_ms - self._samples[0][0], self._window_ms)
        return self._total * 1000 / elapsed_ms

    @property
    def is_exceeded(self) -> bool:
        return self.rate_now > self._rate()

    def _forget(self, now_ms: int) -> None:
        while self._samples and now_ms - self._samples[0][0] >= self._window_count * self._window_ms:
            self._total -= self._samples.popleft()[1]
