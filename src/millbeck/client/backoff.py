"""Exponential retry backoff with an upper bound and jitter."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.environment import Randomness

_DOUBLINGS_MAX: Final = 16
_JITTER: Final = 0.2
_GRAIN: Final = 1 << 20


class Backoff:
    """Retry backoff: ``delay_s(n)`` is the delay after the n-th consecutive failure (n >= 1): ``first * 2^(n-1)`` with
    20 % jitter."""

    __slots__ = ("_first_s", "_max_s", "_randomness")

    def __init__(self, randomness: Randomness, *, first_ms: int, max_ms: int) -> None:
        self._randomness = randomness
        self._max_s = max_ms / 1000
        self._first_s = min(first_ms, max_ms) / 1000

    def delay_s(self, failures: int) -> float:
        if failures <= 0:
            return 0.0
        delay_s = min(self._first_s * (1 << min(failures - 1, _DOUBLINGS_MAX)), self._max_s)
        spread = self._randomness.below(_GRAIN) / _GRAIN * 2 - 1
        return delay_s * (1 + _JITTER * spread)
