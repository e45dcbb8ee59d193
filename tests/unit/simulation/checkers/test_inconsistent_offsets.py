"""Offsets that stand for two values are found."""

from __future__ import annotations

from collections.abc import Callable

from millbeck.simulation.checkers.log_contents import inconsistent_offsets
from millbeck.simulation.histories.history import History, SendOutcome


def test_a_clean_history_is_consistent(make_history: Callable[[], History]) -> None:
    assert inconsistent_offsets(make_history()) == []


def test_two_readers_that_saw_different_values(make_history: Callable[[], History]) -> None:
    history = make_history()
    offset, _ = history.final["t-0"][5]
    history.poll("c1", 0, "t-0", [(offset, "another")])
    assert "inconsistent offsets" in {anomaly.kind for anomaly in inconsistent_offsets(history)}


def test_an_acknowledged_offset_where_another_value_is_read(make_history: Callable[[], History]) -> None:
    history = make_history()
    victim = next(
        send for send in history.sends if send.outcome is SendOutcome.ACKNOWLEDGED and send.partition == "t-0"
    )
    victim.offset = history.final["t-0"][-1][0]
    assert len(inconsistent_offsets(history)) >= 1


def test_two_sends_acknowledged_with_one_offset() -> None:
    history = History()
    history.send("p", "t-0", "a").acknowledged(4)
    history.send("q", "t-0", "b").acknowledged(4)
    assert len(inconsistent_offsets(history)) == 1
