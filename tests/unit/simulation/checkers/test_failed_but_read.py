"""Records that should not exist are found."""

from __future__ import annotations

from collections.abc import Callable

from millbeck.simulation.checkers.log_contents import failed_but_read
from millbeck.simulation.histories.history import History, SendOutcome


def test_a_clean_history_holds_only_what_was_taken(make_history: Callable[[], History]) -> None:
    assert failed_but_read(make_history()) == []


def test_a_refused_record_that_is_read(make_history: Callable[[], History]) -> None:
    history = make_history()
    refused = next(send for send in history.sends if send.outcome is SendOutcome.FAILED)
    history.poll("c1", 0, refused.partition, [(10_000, refused.value)])
    assert [anomaly.kind for anomaly in failed_but_read(history)] == ["failed but read"]


def test_a_record_nobody_sent(make_history: Callable[[], History]) -> None:
    history = make_history()
    history.poll("c1", 0, "t-0", [(10_000, "from nowhere")])
    assert [anomaly.kind for anomaly in failed_but_read(history)] == ["never sent"]


def test_a_record_in_the_wrong_partition(make_history: Callable[[], History]) -> None:
    history = make_history()
    history.poll("c1", 0, "t-1", [(10_000, history.final["t-0"][0][1])])
    assert [anomaly.kind for anomaly in failed_but_read(history)] == ["never sent"]


def test_a_send_of_unknown_outcome_may_be_read() -> None:
    history = History()
    history.send("p", "t-0", "a")
    history.record_final_read("t-0", [(0, "a")])
    assert failed_but_read(history) == []
