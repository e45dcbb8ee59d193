"""An active segment that was compacted is found."""

from __future__ import annotations

import pytest

from millbeck.simulation.checkers.compaction import compacted_active
from tests.unit.simulation.checkers.tables import records, table


@pytest.mark.parametrize(("active_from", "missing"), [(4, 0), (2, 0), (1, 1), (0, 2)])
def test_everything_of_the_active_segment_is_there(active_from: int, missing: int) -> None:
    history = table("a", "a", "a", "a")
    history.record_final_read("0", records(history, 2, 3))
    history.active_from["0"] = active_from
    assert [anomaly.kind for anomaly in compacted_active(history)] == ["active compacted"] * missing
