"""One log being compacted: how far it is, and who can end it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from millbeck.kernel.environment import Errand
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import MIB
from millbeck.storage.log import Log

if TYPE_CHECKING:
    from millbeck.storage.compaction.job import Outcome
    from millbeck.storage.compaction.plan import Survey

PROGRESS_LOG_SECONDS: Final = 30.0

log = logging.getLogger(__name__)


class CleanerRun:
    def __init__(self, thread: int, partition_log: Log, surveyed: Survey, now: float) -> None:
        self.thread = thread
        self.log = partition_log
        self.surveyed = surveyed
        self.began = now
        self.is_stopped = False
        self.errand: Errand[Outcome] | None = None
        self._bytes_done = 0
        self._bytes_total = 0
        self._now = now
        self._told_at = now

    @property
    def name(self) -> TopicPartition:
        return self.log.topic_partition

    def stop(self) -> None:
        """Nobody wants it any more; it ends soon."""
        self.is_stopped = True
        if self.errand is not None:
            self.errand.stop()

    def reported(self, progress: object, now: float) -> None:
        """Word from the worker; a long run is told of in the log."""
        from millbeck.storage.compaction.job import Progress

        if not isinstance(progress, Progress):
            return
        self._bytes_done, self._bytes_total = progress.bytes_done, progress.bytes_total
        self._now = now
        if now - self._told_at >= PROGRESS_LOG_SECONDS:
            self._told_at = now
            log.info(
                "compacting %s: %d %% of %d MiB, %.1f MiB/s",
                self.name,
                100 * self.share_done,
                progress.bytes_total // MIB,
                self.bytes_per_second / MIB,
            )

    @property
    def share_done(self) -> float:
        return self._bytes_done / self._bytes_total if self._bytes_total else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Of source data, on the average of the run so far."""
        elapsed = self._now - self.began
        return self._bytes_done / elapsed if elapsed > 0 else 0.0
