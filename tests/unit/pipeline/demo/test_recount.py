"""The recount, and what it says about a pipeline that says something else."""

from __future__ import annotations

import json

from millbeck.pipeline.demo.recount import WINDOW_MS, differences, recount, written


def _order(customer: str, cents: int) -> bytes:
    return json.dumps({"customer": customer, "cents": cents}).encode()


def test_it_counts_by_region_and_window_up_to_a_time() -> None:
    customers = [(b"a", b'{"region": "north"}')]
    orders = [
        (0, _order("a", 1)),
        (WINDOW_MS - 1, _order("a", 2)),
        (WINDOW_MS, _order("x", 4)),
        (2 * WINDOW_MS, _order("a", 8)),
    ]
    assert recount(customers, orders, before_ms=2 * WINDOW_MS) == {("north", 0): 3, ("unknown", WINDOW_MS): 4}


def test_what_is_written_twice_is_noticed() -> None:
    row = (b"north", b'{"window_start": 0, "total_cents": 5}')
    assert written([row]) == ({("north", 0): 5}, [])
    assert written([row, row]) == ({("north", 0): 5}, [("north", 0)])


def test_every_kind_of_difference_is_named() -> None:
    expected = {("a", 0): 1, ("b", 0): 2, ("c", 0): 3}
    found = {("a", 0): 1, ("b", 0): 9, ("d", 0): 4}
    assert differences(expected, found, [("a", 0)]) == [
        "a at 0 was written more than once",
        "b at 0 has 9 cents, the recount 2",
        "c at 0 is missing: 3 cents were ordered",
        "d at 0 has 4 cents, but nothing was ordered",
    ]
    assert differences(expected, dict(expected), []) == []
