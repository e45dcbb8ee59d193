"""The arithmetic of quotas: a rate over sampled windows, and a token bucket. Pure: callers pass the time.

Both work as in Kafka. The rate is the sum of the samples divided by the time they cover, which counts as at least all
full windows. So a client may use at once the allowance that it did not use in earlier windows.
"""

from __future__ import annotations

from collections import deque
from typing import Final

SAMPLES: Final = 11
WINDOW_MS: Final = 1000


class WindowedRate:
    """A rate per second over up to ``samples`` windows, the current one included."""

    __slots__ = ("_samples", "_total", "_window_ms", "_windows", "used_ms")

    def __init__(self, *, samples: int = SAMPLES, window_ms: int = WINDOW_MS) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._windows: deque[list[float]] = deque()  # start in milliseconds and sum, oldest first
        self._total = 0.0
        self.used_ms = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Count an amount; a negative one undoes an earlier one."""
        self._forget(now_ms)
        if not self._windows or now_ms - self._windows[-1][0] >= self._window_ms:
            if len(self._windows) == self._samples:
                self._total -= self._windows.popleft()[1]
            self._windows.append([now_ms, 0.0])
        self._windows[-1][1] += amount
        self._total += amount
        self.used_ms = now_ms

    def rate(self, now_ms: int) -> float:
        self._forget(now_ms)
        return self._total * 1000 / self._covered_ms(now_ms)

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """The time until the rate has fallen to the quota; 0 if it is not above it."""
        rate = self.rate(now_ms)
        return round((rate - quota) / quota * self._covered_ms(now_ms)) if rate > quota else 0

    def _covered_ms(self, now_ms: int) -> float:
        covered_ms = now_ms - self._windows[0][0] if self._windows else 0
        missing = self._samples - 1 - covered_ms // self._window_ms
        if missing > 0:
            covered_ms += missing * self._window_ms
        return max(covered_ms, self._window_ms)

    def _forget(self, now_ms: int) -> None:
        windows = self._windows
        while windows and now_ms - windows[0][0] >= self._samples * self._window_ms:
            self._total -= windows.popleft()[1]
        if not windows:
            self._total = 0.0  # no rounding errors are carried on


class TokenBucket:
    """A token bucket: tokens are added at a rate, up to those of all windows; taking tokens may leave it below zero
    (KIP-599)."""

    __slots__ = ("_burst_s", "_tokens", "_updated_ms", "used_ms")

    def __init__(self, *, samples: int = SAMPLES, window_ms: int = WINDOW_MS) -> None:
        self._burst_s = samples * window_ms / 1000
        self._tokens: float | None = None
        self._updated_ms = 0
        self.used_ms = 0

    def tokens(self, rate: float, now_ms: int) -> float:
        burst = rate * self._burst_s
        gained = rate * (now_ms - self._updated_ms) / 1000
        self._tokens = burst if self._tokens is None else min(burst, self._tokens + gained)
        self._updated_ms = self.used_ms = now_ms
        return self._tokens

    def take(self, amount: float, rate: float, now_ms: int) -> None:
        self._tokens = self.tokens(rate, now_ms) - amount

    def throttle_ms(self, rate: float, now_ms: int) -> int:
        """The time until the bucket is no longer below zero."""
        tokens = self.tokens(rate, now_ms)
        return round(-tokens / rate * 1000) if tokens < 0 else 0
