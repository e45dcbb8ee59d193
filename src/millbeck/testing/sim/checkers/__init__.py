"""Checkers of client histories, one invariant per module. Each is linear but for one sort of offsets."""

from __future__ import annotations

from millbeck.testing.sim.checkers import (
    active_kept,
    duplicates,
    failed_but_read,
    inconsistent_offsets,
    latest_kept,
    lost_acknowledged,
    monotonic_polls,
    order,
    poll_skips,
    tombstones,
    vacuous,
)
from millbeck.testing.sim.history import Anomaly, History
from millbeck.testing.sim.table_history import TableHistory

_OF_ANY_LOG = (
    duplicates.check,
    order.check,
    inconsistent_offsets.check,
    monotonic_polls.check,
    failed_but_read.check,
)
_OF_WHOLE_LOGS = (*_OF_ANY_LOG, lost_acknowledged.check, poll_skips.check)
_OF_TABLES = (latest_kept.check, tombstones.check, active_kept.check)


def check_all(history: History, *, acknowledged_count_min: int = 1) -> list[Anomaly]:
    """Every anomaly of a complete history; a history of a run in which nothing happened is one, too."""
    anomalies = vacuous.check(history, acknowledged_count_min=acknowledged_count_min)
    for check in _OF_WHOLE_LOGS:
        anomalies += check(history)
    return anomalies


def check_table(history: TableHistory, *, acknowledged_count_min: int = 1) -> list[Anomaly]:
    """The same for a compacted topic, in which records go and offsets stay."""
    anomalies = vacuous.check(history, acknowledged_count_min=acknowledged_count_min)
    for check in _OF_ANY_LOG:
        anomalies += check(history)
    for check_of_tables in _OF_TABLES:
        anomalies += check_of_tables(history)
    return anomalies


__all__ = ["check_all", "check_table"]
