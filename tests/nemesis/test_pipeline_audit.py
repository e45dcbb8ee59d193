"""What is lost, repeated, invented or taken back in a pipeline's output is found; a run of too little is no run."""

from __future__ import annotations

import json

import pytest

from nemesis.pipeline_audit import Bar, Row, audit_copies, audit_tail, audit_windows, emptiness, rows_of

CUSTOMERS = [Row(b"c0", b'{"region": "north"}', 0)]
ORDERS = [Row(b"o%d" % number, b'{"customer": "c0", "cents": 5}', number * 1000) for number in range(4)]


def _window(cents: int) -> Row:
    return Row(b"north", json.dumps({"window_start": 0, "total_cents": cents}).encode(), 0)


@pytest.mark.parametrize(
    ("windows", "complaint"),
    [
        ([_window(20)], None),
        ([], "missing"),
        ([_window(15)], "the recount 20"),
        ([_window(20), _window(20)], "more than once"),
    ],
)
def test_windows_are_those_of_the_recount(windows: list[Row], complaint: str | None) -> None:
    problems = audit_windows(CUSTOMERS, ORDERS, windows, 300_000)
    assert len(problems) == (complaint is not None)
    assert complaint is None or complaint in problems[0]


def test_every_order_is_there_once() -> None:
    assert audit_copies(ORDERS, ORDERS[::-1]) == []
    assert audit_copies(ORDERS, ORDERS[1:]) == ["order o0 is there 0 times, not 1"]
    assert audit_copies(ORDERS, [*ORDERS, ORDERS[2]]) == ["order o2 is there 2 times, not 1"]
    assert audit_copies(ORDERS[1:], ORDERS) == ["order o0 was never ordered"]


def test_what_was_read_along_the_way_stays() -> None:
    final = {("copies", 0, offset): row for offset, row in enumerate(ORDERS)}
    assert audit_tail(final, final) == []
    one_less = {place: row for place, row in final.items() if place[2] != 1}
    assert "not there now" in audit_tail(final, one_less)[0]
    assert "passed over" in audit_tail(one_less, final)[0]
    assert " and is " in audit_tail({**final, ("copies", 0, 1): ORDERS[0]}, final)[0]


def test_rows_of_one_topic_in_order() -> None:
    read = {("b", 0, 0): ORDERS[0], ("a", 0, 1): ORDERS[1], ("a", 0, 0): ORDERS[2]}
    assert rows_of(read, "a") == [ORDERS[2], ORDERS[1]]


def test_a_run_of_too_little_says_nothing() -> None:
    bar = Bar(kills={"broker": 2, "worker": 1}, kills_in_all=4, windows=10, copies=100)
    assert emptiness(bar, {"broker": 2, "worker": 2}, 10, 100) == []
    assert len(emptiness(bar, {"broker": 1, "worker": 2}, 9, 99)) == 4
    assert "only 0 kills of worker" in emptiness(bar, {"broker": 4}, 10, 100)[0]
