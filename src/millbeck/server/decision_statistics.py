"""What the quorum's driver counts of the decisions that pass through it."""

from __future__ import annotations

from millbeck.kernel.histogram import Histogram
from millbeck.server.recent import RecentValues


class DecisionStatistics:
    __slots__ = ("commit_ms", "decision_count", "fault_count", "processing_ms")

    def __init__(self) -> None:
        self.decision_count = 0
        self.fault_count = 0
        """Contradictions in the metadata, and failures of its log: none of it should ever happen."""
        self.processing_ms = Histogram()
        """From taking up a decision to the end of its append; the metrics put one of theirs here."""
        self.commit_ms = RecentValues()
        """From the append to the commit."""

    def decided(self, seconds: float) -> None:
        self.decision_count += 1
        self.processing_ms.record(seconds * 1000)

    def committed(self, seconds: float, now_s: float) -> None:
        self.commit_ms.record(seconds * 1000, now_s)
