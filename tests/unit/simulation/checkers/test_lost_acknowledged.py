"""Acknowledged records that are missing are found."""

from __future__ import annotations

from collections.abc import Callable

from millbeck.simulation.checkers.log_contents import lost_acknowledged
from millbeck.simulation.histories.history import History, SendOutcome


def test_a_clean_history_lost_nothing(make_history: Callable[[], History]) -> None:
    assert lost_acknowledged(make_history()) == []


def test_an_acknowledged_record_that_is_not_there_in_the_end(make_history: Callable[[], History]) -> None:
    history = make_history()
    victim = next(
        send for send in history.sends if send.outcome is SendOutcome.ACKNOWLEDGED and send.partition == "t-1"
    )
    history.record_final_read("t-1", [record for record in history.final["t-1"] if record[1] != victim.value])
    assert [anomaly.kind for anomaly in lost_acknowledged(history)] == ["lost acknowledged"]


def test_a_partition_that_was_never_read_to_its_end(make_history: Callable[[], History]) -> None:
    history = make_history()
    del history.final["t-2"]
    assert {anomaly.kind for anomaly in lost_acknowledged(history)} == {"lost acknowledged"}


def test_unknown_and_failed_sends_may_be_missing() -> None:
    history = History()
    history.send("p", "t-0", "unknown")
    history.send("p", "t-0", "failed").failed()
    history.record_final_read("t-0", [])
    assert lost_acknowledged(history) == []
