from __future__ import annotations

import pytest

from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.state import ALLOWED_FROM, CAN_REBALANCE, GroupState

LEGAL = {
    ("Empty", "PreparingRebalance"),
    ("PreparingRebalance", "CompletingRebalance"),
    ("PreparingRebalance", "Empty"),
    ("CompletingRebalance", "Stable"),
    ("CompletingRebalance", "PreparingRebalance"),
    ("Stable", "PreparingRebalance"),
    *((state.value, "Dead") for state in GroupState),
}


@pytest.mark.parametrize("before", GroupState)
@pytest.mark.parametrize("after", GroupState)
def test_only_the_legal_moves_are_made(before: GroupState, after: GroupState) -> None:
    group = ClassicGroup("g")
    group.state = before
    if (before.value, after.value) in LEGAL:
        group.transition_to(after, 42)
        assert (group.state, group.previous_state, group.state_timestamp_ms) == (after, before, 42)
    else:
        with pytest.raises(AssertionError, match=f"{before.value} to {after.value}"):
            group.transition_to(after, 42)
        assert group.state is before


def test_a_rebalance_starts_where_the_table_says() -> None:
    assert ALLOWED_FROM[GroupState.PREPARING_REBALANCE] == CAN_REBALANCE
