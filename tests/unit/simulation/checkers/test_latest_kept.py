"""Tables that compaction got wrong are found."""

from __future__ import annotations

import pytest

from millbeck.simulation.checkers.compaction import lost_latest
from tests.unit.simulation.checkers.tables import records, table

LEFT = {
    "everything": ((0, 1, 2, 3, 4), []),
    "the latest of each": ((2, 3, 4), []),
    "a tombstone may go with all that it deleted": ((2, 4), []),
    "a value that is missing": ((2, 3), ["lost latest"]),
    "an older one in its place": ((1, 3, 4), ["lost latest"]),
    "a deleted value that is back": ((0, 2, 4), ["resurrected"]),
    "nothing at all": ((), ["lost latest", "lost latest"]),
}


@pytest.mark.parametrize(("offsets", "kinds"), LEFT.values(), ids=LEFT.keys())
def test_what_may_be_left(offsets: tuple[int, ...], kinds: list[str]) -> None:
    history = table("a", "b", "b", "-a", "c")
    history.record_final_read("0", records(history, *offsets))
    assert [anomaly.kind for anomaly in lost_latest(history)] == kinds
