"""Checkers of client histories, one function per invariant. Each takes linear time, apart from sorting offsets once."""

from __future__ import annotations

from millbeck.simulation.checkers.compaction import compacted_active, early_removals, lost_latest
from millbeck.simulation.checkers.log_contents import (
    duplicates,
    failed_but_read,
    inconsistent_offsets,
    lost_acknowledged,
    out_of_order,
    proved_too_little,
)
from millbeck.simulation.checkers.polls import nonmonotonic_polls, poll_skips
from millbeck.simulation.histories.history import Anomaly, History
from millbeck.simulation.histories.table_history import TableHistory

_OF_ANY_LOG = (
    duplicates,
    out_of_order,
    inconsistent_offsets,
    nonmonotonic_polls,
    failed_but_read,
)
_OF_WHOLE_LOGS = (*_OF_ANY_LOG, lost_acknowledged, poll_skips)
_OF_TABLES = (lost_latest, early_removals, compacted_active)


def check_all(history: History, *, acknowledged_count_min: int = 1) -> list[Anomaly]:
    """Return all anomalies of a complete history; too few events are an anomaly as well."""
    anomalies = proved_too_little(history, acknowledged_count_min=acknowledged_count_min)
    for check in _OF_WHOLE_LOGS:
        anomalies += check(history)
    return anomalies


def check_table(history: TableHistory, *, acknowledged_count_min: int = 1) -> list[Anomaly]:
    """Return all anomalies of a compacted topic's history, in which records are removed and the others keep their
    offsets.
    """
    anomalies = proved_too_little(history, acknowledged_count_min=acknowledged_count_min)
    for check in _OF_ANY_LOG:
        anomalies += check(history)
    for check_of_tables in _OF_TABLES:
        anomalies += check_of_tables(history)
    return anomalies


__all__ = ["check_all", "check_table"]
