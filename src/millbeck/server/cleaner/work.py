"""What the worker process does: one compaction, throttled, with a word now and then on how far it is.

The process that runs this loads this module and `millbeck.storage.compaction`, and little else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from millbeck.kernel.environment import Workplace
from millbeck.server.cleaner.throttle import RateThrottle
from millbeck.storage.compaction.compactor import compact
from millbeck.storage.compaction.job import CompactionJob, Outcome, Progress

REPORT_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    job: CompactionJob
    bytes_per_second: float


class Reporter:
    """Passes progress on, once a second."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._last = place.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = self._place.monotonic()
        if now - self._last >= REPORT_SECONDS:
            self._last = now
            self._place.report(progress)


def run(place: Workplace, order: Order) -> Outcome:
    """The errand itself. Raises `CompactionError` and OSError; files it made may be left behind then."""
    return compact(order.job, place.files, RateThrottle(place, order.bytes_per_second), Reporter(place))
