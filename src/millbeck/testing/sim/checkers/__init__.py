"""Checkers of client histories, one invariant per module. Each is linear but for one sort of offsets."""

from __future__ import annotations

from millbeck.testing.sim.checkers import (
    duplicates,
    failed_but_read,
    inconsistent_offsets,
    lost_acknowledged,
    monotonic_polls,
    order,
    poll_skips,
    vacuous,
)
from millbeck.testing.sim.history import Anomaly, History

_CHECKS = (
    duplicates.check,
    order.check,
    lost_acknowledged.check,
    inconsistent_offsets.check,
    poll_skips.check,
    monotonic_polls.check,
    failed_but_read.check,
)


def check_all(history: History, *, acknowledged_count_min: int = 1) -> list[Anomaly]:
    """Every anomaly of a complete history; a history of a run in which nothing happened is one, too."""
    anomalies = vacuous.check(history, acknowledged_count_min=acknowledged_count_min)
    for check in _CHECKS:
        anomalies += check(history)
    return anomalies


__all__ = ["check_all"]
