"""Statistics of the controller's decisions, counted by the quorum driver."""

from __future__ import annotations

from millbeck.kernel.histogram import Histogram


class DecisionStatistics:
    __slots__ = ("decision_count", "fault_count", "late_heartbeat_count", "processing_ms")

    def __init__(self) -> None:
        self.decision_count = 0
        self.fault_count = 0
        """Inconsistent metadata and failures of the metadata log; should always be 0."""
        self.late_heartbeat_count = 0
        """Heartbeats that were not answered before the broker's session timed out."""
        self.processing_ms = Histogram()
        """Time from the start of a decision to the end of its append; replaced by the metrics registry's histogram."""

    def decided(self, seconds: float) -> None:
        self.decision_count += 1
        self.processing_ms.record(seconds * 1000)
