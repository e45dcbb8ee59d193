"""Limit the I/O rate of a compaction, and stop it when it was cancelled.

The limit applies to the average: after every read or write, the time it should have taken is compared with the elapsed
time, and the difference is slept. Unused allowance is not carried over.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.environment import WorkCancelled, WorkerContext
from millbeck.storage.compaction.job import CompactionCancelled

WINDOW_SECONDS: Final = 1.0
NAP_SECONDS_MIN: Final = 0.005
"""Shorter sleeps are accumulated, because the operating system would lengthen them."""
NAP_SECONDS_MAX: Final = 0.5
"""The maximum interval between two checks for a changed rate or a cancellation."""


class RateThrottle:
    """Call it with the size of every read and write. ``rate``, in bytes per second, can be changed by the broker."""

    def __init__(self, context: WorkerContext, rate: float) -> None:
        self._context = context
        self._rate = rate
        self._began = context.monotonic()
        self._seconds_due = 0.0

    def __call__(self, size_bytes: int) -> None:
        try:
            self._context.pause(0)
            self._seconds_due += size_bytes / self._current_rate()
            while (nap := self._seconds_due - (self._context.monotonic() - self._began)) >= NAP_SECONDS_MIN:
                self._context.pause(min(nap, NAP_SECONDS_MAX))
                self._current_rate()
        except WorkCancelled:
            raise CompactionCancelled from None
        if -nap > WINDOW_SECONDS:
            self._began = self._context.monotonic()
            self._seconds_due = 0.0

    def _current_rate(self) -> float:
        """The current rate; when it changes, the remaining sleep time is scaled to the new rate."""
        message = self._context.word()
        if isinstance(message, int | float) and message > 0 and message != self._rate:
            now = self._context.monotonic()
            left = self._seconds_due - (now - self._began)
            self._began = now
            self._seconds_due = max(0.0, left) * self._rate / message
            self._rate = float(message)
        return self._rate
