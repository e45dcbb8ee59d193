"""A run that proves nothing is a failure."""

from __future__ import annotations

from millbeck.testing.sim.checkers import vacuous
from millbeck.testing.sim.history import History


def test_a_full_history_is_not_vacuous(make_history) -> None:
    assert vacuous.check(make_history(), acknowledged_count_min=100) == []


def test_too_few_acknowledgements(make_history) -> None:
    assert [anomaly.kind for anomaly in vacuous.check(make_history(), acknowledged_count_min=10_000)] == ["vacuous"]


def test_no_final_read(make_history) -> None:
    history = make_history()
    history.final = {"t-0": ()}
    assert [anomaly.kind for anomaly in vacuous.check(history)] == ["vacuous"]


def test_nothing_at_all() -> None:
    assert len(vacuous.check(History())) == 2
