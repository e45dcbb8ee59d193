from __future__ import annotations

from typing import get_args

from millbeck.raft.effects import AppendLeaderChange, Effect, MoveHighWatermark, PersistState
from millbeck.raft.quorum_state import QuorumState


def test_effects_are_values_and_all_of_them_are_listed() -> None:
    assert set(get_args(Effect)) == {PersistState, AppendLeaderChange, MoveHighWatermark}
    assert PersistState(state=QuorumState()) == PersistState(state=QuorumState())
    assert MoveHighWatermark(high_watermark=3) != MoveHighWatermark(high_watermark=4)
