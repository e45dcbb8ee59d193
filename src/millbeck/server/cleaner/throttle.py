"""Holds a compaction back to so many bytes a second, and ends it when it is not wanted any more.

The rate is an average: after every piece of work the time it should have taken is compared with the time it took, and
the difference is slept. Time in which less was done than allowed is not saved up for later.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.environment import Workplace, WorkStopped
from millbeck.storage.compaction.job import CompactionCancelled

WINDOW_SECONDS: Final = 1.0
NAP_SECONDS_MIN: Final = 0.005
"""Shorter ones are saved up: the system would make them longer than they should be."""
NAP_SECONDS_MAX: Final = 0.5
"""Between looks at whether the rate has changed or the work is not wanted any more."""


class RateThrottle:
    """Call it with the bytes of every read and write. ``rate`` is bytes a second until the loop says otherwise."""

    def __init__(self, place: Workplace, rate: float) -> None:
        self._place = place
        self._rate = rate
        self._began = place.monotonic()
        self._seconds_due = 0.0

    def __call__(self, size_bytes: int) -> None:
        try:
            self._place.pause(0)
            self._seconds_due += size_bytes / self._current_rate()
            while (nap := self._seconds_due - (self._place.monotonic() - self._began)) >= NAP_SECONDS_MIN:
                self._place.pause(min(nap, NAP_SECONDS_MAX))
                self._current_rate()
        except WorkStopped:
            raise CompactionCancelled from None
        if -nap > WINDOW_SECONDS:
            self._began = self._place.monotonic()
            self._seconds_due = 0.0

    def _current_rate(self) -> float:
        """The rate of now; time still to be slept for what was done at another one is stretched with it."""
        word = self._place.word()
        if isinstance(word, int | float) and word > 0 and word != self._rate:
            now = self._place.monotonic()
            left = self._seconds_due - (now - self._began)
            self._began = now
            self._seconds_due = max(0.0, left) * self._rate / word
            self._rate = float(word)
        return self._rate
