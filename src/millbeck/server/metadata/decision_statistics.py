"""What the quorum's driver counts of the decisions that pass through it."""

from __future__ import annotations

from millbeck.kernel.histogram import Histogram


class DecisionStatistics:
    __slots__ = ("decision_count", "fault_count", "late_heartbeat_count", "processing_ms")

    def __init__(self) -> None:
        self.decision_count = 0
        self.fault_count = 0
        """Contradictions in the metadata, and failures of its log: none of it should ever happen."""
        self.late_heartbeat_count = 0
        """Not answered before the broker's session was over."""
        self.processing_ms = Histogram()
        """From taking up a decision to the end of its append; the metrics put one of theirs here."""

    def decided(self, seconds: float) -> None:
        self.decision_count += 1
        self.processing_ms.record(seconds * 1000)
