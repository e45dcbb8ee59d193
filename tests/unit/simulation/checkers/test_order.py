"""Records out of their producer's order are found."""

from __future__ import annotations

from collections.abc import Callable

from millbeck.simulation.checkers.log_contents import out_of_order
from millbeck.simulation.histories.history import History


def test_a_clean_history_is_in_order(make_history: Callable[[], History]) -> None:
    assert out_of_order(make_history()) == []


def test_two_records_of_one_producer_that_changed_places(make_history: Callable[[], History]) -> None:
    history = make_history()
    records = list(history.final["t-0"])
    sent = [history.sent(record[1]) for record in records]
    mine = [place for place, each in enumerate(sent) if each is not None and each.producer == "p0"]
    one, other = mine[3], mine[7]
    (first_offset, first), (last_offset, last) = records[one], records[other]
    records[one], records[other] = (first_offset, last), (last_offset, first)
    history.polls.clear()
    history.record_final_read("t-0", records)
    assert {anomaly.kind for anomaly in out_of_order(history)} == {"order"}


def test_acknowledged_offsets_that_fall_while_nobody_has_read() -> None:
    history = History()
    history.send("p", "t-0", "a").acknowledged(5)
    history.send("p", "t-0", "b").acknowledged(4)
    assert len(out_of_order(history)) == 1


def test_producers_are_independent_of_each_other() -> None:
    history = History()
    history.send("p", "t-0", "a").acknowledged(5)
    history.send("q", "t-0", "b").acknowledged(4)
    assert out_of_order(history) == []
