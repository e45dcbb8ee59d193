"""Consumers that go back are found."""

from __future__ import annotations

from collections.abc import Callable

from millbeck.simulation.checkers.polls import nonmonotonic_polls
from millbeck.simulation.histories.history import History


def test_a_clean_history_only_goes_on(make_history: Callable[[], History]) -> None:
    assert nonmonotonic_polls(make_history()) == []


def test_a_record_polled_again(make_history: Callable[[], History]) -> None:
    history = make_history()
    poll = next(poll for poll in history.polls if poll.records)
    history.polls.append(poll)
    assert {anomaly.kind for anomaly in nonmonotonic_polls(history)} == {"nonmonotonic poll"}


def test_a_final_read_that_goes_back(make_history: Callable[[], History]) -> None:
    history = make_history()
    records = history.final["t-0"]
    history.record_final_read("t-0", (*records, records[0]))
    assert [anomaly.kind for anomaly in nonmonotonic_polls(history)] == ["nonmonotonic poll"]


def test_a_new_assignment_may_go_back(make_history: Callable[[], History]) -> None:
    history = make_history()
    history.poll("c0", 1, "t-0", history.final["t-0"][:5])
    assert nonmonotonic_polls(history) == []
