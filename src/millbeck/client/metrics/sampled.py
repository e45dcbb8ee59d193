"""Rates, averages and maxima over the last samples, as Kafka's clients compute them. Pure: time is an argument.

A sample covers ``metrics.sample.window.ms``, and ``metrics.num.samples`` of them count, the current one included.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple


class Window(NamedTuple):
    seconds: float = 30.0
    samples: int = 2

    @property
    def whole_s(self) -> float:
        return self.seconds * self.samples


class Meter:
    """A total, and its rate per second."""

    __slots__ = ("_marks", "_next_s", "_window", "total")

    def __init__(self, window: Window) -> None:
        self.total = 0.0
        self._window = window
        self._marks: deque[tuple[float, float]] = deque()
        """The start of each sample, and the total at that time."""
        self._next_s = -math.inf

    def add(self, amount: float, now_s: float) -> None:
        if now_s >= self._next_s:
            self._begin_sample(now_s)
        self.total += amount

    def _begin_sample(self, now_s: float) -> None:
        marks = self._marks
        marks.append((now_s, self.total))
        self._next_s = now_s + self._window.seconds
        while len(marks) > self._window.samples:
            marks.popleft()

    def rate(self, now_s: float) -> float:
        while self._marks and self._marks[0][0] <= now_s - self._window.whole_s:
            self._marks.popleft()
        if not self._marks:
            return 0.0
        start_s, total = self._marks[0]
        # A sample that has just begun must not make a single event a high rate.
        elapsed_s = max(now_s - start_s, self._window.seconds * (self._window.samples - 1), 0.001)
        return (self.total - total) / elapsed_s


class Average:
    """The average and the maximum of values."""

    __slots__ = ("_next_s", "_samples", "_window", "total")

    def __init__(self, window: Window) -> None:
        self.total = 0.0
        self._window = window
        self._samples: deque[list[float]] = deque()
        """Start, count, sum and maximum of each sample."""
        self._next_s = -math.inf

    def add(self, value: float, now_s: float, count: int = 1) -> None:
        """Add a value, or the average of ``count`` values."""
        if now_s >= self._next_s:
            self._samples.append([now_s, 0, 0.0, -math.inf])
            self._next_s = now_s + self._window.seconds
            while len(self._samples) > self._window.samples:
                self._samples.popleft()
        sample = self._samples[-1]
        sample[1] += count
        sample[2] += value * count
        if value > sample[3]:
            sample[3] = value
        self.total += value * count

    def average(self, now_s: float) -> float:
        """The average; NaN without values, as in Kafka's clients."""
        self._purge(now_s)
        count = sum(sample[1] for sample in self._samples)
        return sum(sample[2] for sample in self._samples) / count if count else math.nan

    def maximum(self, now_s: float) -> float:
        self._purge(now_s)
        return max((sample[3] for sample in self._samples), default=math.nan)

    def _purge(self, now_s: float) -> None:
        while self._samples and self._samples[0][0] <= now_s - self._window.whole_s:
            self._samples.popleft()
        if not self._samples:
            self._next_s = -math.inf
