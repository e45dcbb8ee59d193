"""The code of the worker process: one throttled compaction, with progress reports.

The worker process imports this module and `millbeck.storage.compaction`, and little else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from millbeck.kernel.environment import WorkerContext
from millbeck.server.cleaner.throttle import RateThrottle
from millbeck.storage.compaction.compactor import compact
from millbeck.storage.compaction.job import CompactionJob, CompactionProgress, CompactionResult

REPORT_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerJob:
    job: CompactionJob
    bytes_per_second: float


class Reporter:
    """Reports progress to the broker, at most once a second."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._last = context.monotonic()

    def __call__(self, progress: CompactionProgress) -> None:
        now = self._context.monotonic()
        if now - self._last >= REPORT_SECONDS:
            self._last = now
            self._context.report(progress)


def run(context: WorkerContext, order: CleanerJob) -> CompactionResult:
    """Run a compaction. Raises `CompactionError` and OSError, and may then leave output files behind."""
    return compact(order.job, context.files, RateThrottle(context, order.bytes_per_second), Reporter(context))
