"""An active segment that was compacted is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from millbeck.testing.sim.checkers import active_kept

sys.path.insert(0, str(Path(__file__).parent))
from tables import records, table


@pytest.mark.parametrize(("active_from", "missing"), [(4, 0), (2, 0), (1, 1), (0, 2)])
def test_everything_of_the_active_segment_is_there(active_from: int, missing: int) -> None:
    history = table("a", "a", "a", "a")
    history.read_finally("0", records(history, 2, 3))
    history.active_from["0"] = active_from
    assert [anomaly.kind for anomaly in active_kept.check(history)] == ["active compacted"] * missing
