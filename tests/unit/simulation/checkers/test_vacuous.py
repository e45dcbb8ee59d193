"""A run that proves nothing is a failure."""

from __future__ import annotations

from collections.abc import Callable

from millbeck.simulation.checkers.log_contents import proved_too_little
from millbeck.simulation.histories.history import History


def test_a_full_history_is_not_vacuous(make_history: Callable[[], History]) -> None:
    assert proved_too_little(make_history(), acknowledged_count_min=100) == []


def test_too_few_acknowledgements(make_history: Callable[[], History]) -> None:
    assert [anomaly.kind for anomaly in proved_too_little(make_history(), acknowledged_count_min=10_000)] == ["vacuous"]


def test_no_final_read(make_history: Callable[[], History]) -> None:
    history = make_history()
    history.final = {"t-0": ()}
    assert [anomaly.kind for anomaly in proved_too_little(history)] == ["vacuous"]


def test_nothing_at_all() -> None:
    assert len(proved_too_little(History())) == 2
