"""Statistics of the cleaner for Kafka's metrics: the last run of each thread, and the last check of the logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millbeck.storage.compaction.job import CompactionStats
    from millbeck.storage.compaction.plan import LogToClean


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    seconds: float
    bytes_read: int
    bytes_written: int
    buffer_utilization: float
    compaction_delay_ms: int


@dataclass(slots=True)
class CleanerStatistics:
    """Totals, and ``last_runs`` by thread number, as in Kafka."""

    last_runs: dict[int, LastRun] = field(default_factory=dict)
    dirtiest_ratio: float = 0.0
    looked_at_ms: int = 0
    run_count: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def looked(self, surveys: Iterable[LogToClean], now_ms: int) -> None:
        self.dirtiest_ratio = max((each.dirty_ratio for each in surveys), default=0.0)
        self.looked_at_ms = now_ms

    def ran(self, thread: int, seconds: float, surveyed: LogToClean, did: CompactionStats) -> None:
        self.run_count += 1
        self.bytes_read += did.bytes_mapped + did.bytes_read
        self.bytes_written += did.bytes_written
        self.last_runs[thread] = LastRun(
            seconds=seconds,
            bytes_read=did.bytes_read,
            bytes_written=did.bytes_written,
            buffer_utilization=did.map_utilization,
            compaction_delay_ms=surveyed.compaction_delay_ms,
        )

    # Kafka's metrics

    def recopy_percent(self) -> int:
        """The percentage of the bytes read that were written back, over each thread's last run."""
        read = sum(run.bytes_read for run in self.last_runs.values())
        return 100 * sum(run.bytes_written for run in self.last_runs.values()) // read if read else 0

    def seconds_max(self) -> float:
        return max((run.seconds for run in self.last_runs.values()), default=0.0)

    def buffer_utilization_max(self) -> float:
        return max((run.buffer_utilization for run in self.last_runs.values()), default=0.0)

    def compaction_delay_seconds_max(self) -> float:
        return max((run.compaction_delay_ms for run in self.last_runs.values()), default=0) / 1000
