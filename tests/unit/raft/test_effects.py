from __future__ import annotations

from typing import get_args

from millbeck.raft import effects
from millbeck.raft.effects import Effect, MoveHighWatermark, PersistState
from millbeck.raft.quorum_state import QuorumState


def test_effects_are_values_and_all_of_them_are_listed() -> None:
    declared = {
        each for each in vars(effects).values() if isinstance(each, type) and each.__module__ == effects.__name__
    }
    assert set(get_args(Effect)) == declared
    assert PersistState(state=QuorumState()) == PersistState(state=QuorumState())
    assert MoveHighWatermark(high_watermark=3) != MoveHighWatermark(high_watermark=4)
