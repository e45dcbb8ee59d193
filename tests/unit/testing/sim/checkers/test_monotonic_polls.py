"""Consumers that go back are found."""

from __future__ import annotations

from millbeck.testing.sim.checkers import monotonic_polls


def test_a_clean_history_only_goes_on(make_history) -> None:
    assert monotonic_polls.check(make_history()) == []


def test_a_record_polled_again(make_history) -> None:
    history = make_history()
    poll = next(poll for poll in history.polls if poll.records)
    history.polls.append(poll)
    assert {anomaly.kind for anomaly in monotonic_polls.check(history)} == {"nonmonotonic poll"}


def test_a_final_read_that_goes_back(make_history) -> None:
    history = make_history()
    records = history.final["t-0"]
    history.read_finally("t-0", (*records, records[0]))
    assert [anomaly.kind for anomaly in monotonic_polls.check(history)] == ["nonmonotonic poll"]


def test_a_new_assignment_may_go_back(make_history) -> None:
    history = make_history()
    history.poll("c0", 1, "t-0", history.final["t-0"][:5])
    assert monotonic_polls.check(history) == []
