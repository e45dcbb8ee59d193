"""Deletions that a reader did not hear of are found."""

from __future__ import annotations

import pytest

from millbeck.simulation.checkers.compaction import early_removals
from tests.unit.simulation.checkers.tables import RETENTION_MS, records, table

SOON, LATE = 100, 5000
READ = {
    "everything": (SOON, (0, 1, 2, 3), []),
    "compacted": (SOON, (2, 3), []),
    "a tombstone that went too early": (SOON, (3,), ["early removal"]),
    "one that went in time": (LATE, (3,), []),
    "a value that went with it": (LATE, (), ["early removal"]),
    "a deleted value that is back": (LATE, (1, 3), ["resurrected"]),
    "an old value": (LATE, (0, 2), ["early removal"]),
}


@pytest.mark.parametrize(("began_ms", "offsets", "kinds"), READ.values(), ids=READ.keys())
def test_what_a_reader_may_miss(began_ms: int, offsets: tuple[int, ...], kinds: list[str]) -> None:
    history = table("a", "a", "-a", "b")
    history.scan("0", began_ms, began_ms + 10, records(history, *offsets))
    assert [anomaly.kind for anomaly in early_removals(history)] == kinds


def test_a_stale_value_is_found() -> None:
    history = table("b", "b")
    history.scan("0", SOON, SOON + 1, records(history, 0))
    assert [anomaly.kind for anomaly in early_removals(history)] == ["stale read"]


def test_what_was_written_after_the_read_began_may_be_missing() -> None:
    history = table("a", "b", "-a")
    history.scan("0", 15, 30, records(history, 0, 1))
    assert early_removals(history) == []


def test_a_reader_slower_than_the_retention_is_promised_nothing() -> None:
    history = table("a", "-a")
    history.scan("0", SOON, SOON + RETENTION_MS, records(history, 0))
    assert early_removals(history) == []
