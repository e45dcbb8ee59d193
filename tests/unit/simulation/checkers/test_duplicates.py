"""Duplicates are found wherever they are read."""

from __future__ import annotations

from collections.abc import Callable

from millbeck.simulation.checkers.log_contents import duplicates
from millbeck.simulation.histories.history import History


def test_a_clean_history_has_none(make_history: Callable[[], History]) -> None:
    assert duplicates(make_history()) == []


def test_a_value_at_two_offsets_of_the_final_read(make_history: Callable[[], History]) -> None:
    history = make_history()
    records = history.final["t-0"]
    history.record_final_read("t-0", (*records, (10_000, records[3][1])))
    assert [anomaly.kind for anomaly in duplicates(history)] == ["duplicate"]


def test_a_value_in_two_partitions(make_history: Callable[[], History]) -> None:
    history = make_history()
    history.poll("c1", 0, "t-1", [(10_000, history.final["t-0"][5][1])])
    assert [anomaly.kind for anomaly in duplicates(history)] == ["duplicate"]


def test_reading_the_same_record_twice_is_no_duplicate(make_history: Callable[[], History]) -> None:
    history = make_history()
    history.poll("c1", 0, "t-0", history.final["t-0"])
    assert duplicates(history) == []
