"""All checkers together."""

from __future__ import annotations

from collections.abc import Callable

from millbeck.simulation.checkers import check_all
from millbeck.simulation.histories.history import History


def test_a_clean_history_passes_them_all(make_history: Callable[[], History]) -> None:
    assert check_all(make_history(), acknowledged_count_min=200) == []


def test_each_checker_is_asked(make_history: Callable[[], History]) -> None:
    history = make_history()
    records = history.final["t-0"]
    history.poll("c0", 0, "t-0", [(0, records[0][1]), (5000, "phantom"), (5001, records[1][1]), (1, "conflict")])
    history.send("p0", "t-0", "first").acknowledged(9001)
    history.send("p0", "t-0", "second").acknowledged(9000)
    history.record_final_read("t-1", [])
    kinds = {anomaly.kind for anomaly in check_all(history, acknowledged_count_min=10_000)}
    assert kinds == {
        "vacuous",
        "duplicate",
        "order",
        "lost acknowledged",
        "inconsistent offsets",
        "poll skip",
        "nonmonotonic poll",
        "never sent",
    }
