"""A running compaction of one log: reports its progress and can stop it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from millbeck.kernel.environment import WorkerHandle
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import MIB
from millbeck.storage.log import Log

if TYPE_CHECKING:
    from millbeck.storage.compaction.job import CompactionResult
    from millbeck.storage.compaction.plan import LogToClean

PROGRESS_LOG_SECONDS: Final = 30.0

log = logging.getLogger(__name__)


class CleanerRun:
    def __init__(self, thread: int, partition_log: Log, surveyed: LogToClean, now: float) -> None:
        self.thread = thread
        self.log = partition_log
        self.surveyed = surveyed
        self.began = now
        self.is_stopped = False
        self.worker: WorkerHandle[CompactionResult] | None = None
        self._bytes_done = 0
        self._bytes_total = 0
        self._now = now
        self._reported_at = now

    @property
    def name(self) -> TopicPartition:
        return self.log.topic_partition

    def stop(self) -> None:
        """Ask the worker to stop; the run ends soon after."""
        self.is_stopped = True
        if self.worker is not None:
            self.worker.stop()

    def reported(self, progress: object, now: float) -> None:
        """Store a progress report of the worker; the progress of a long run is logged periodically."""
        from millbeck.storage.compaction.job import CompactionProgress

        if not isinstance(progress, CompactionProgress):
            return
        self._bytes_done, self._bytes_total = progress.bytes_done, progress.bytes_total
        self._now = now
        if now - self._reported_at >= PROGRESS_LOG_SECONDS:
            self._reported_at = now
            log.info(
                "compacting %s: %d %% of %d MiB, %.1f MiB/s",
                self.name,
                100 * self.progress_fraction,
                progress.bytes_total // MIB,
                self.bytes_per_second / MIB,
            )

    @property
    def progress_fraction(self) -> float:
        return self._bytes_done / self._bytes_total if self._bytes_total else 0.0

    @property
    def bytes_per_second(self) -> float:
        """The source bytes per second, averaged over the run so far."""
        elapsed = self._now - self.began
        return self._bytes_done / elapsed if elapsed > 0 else 0.0
