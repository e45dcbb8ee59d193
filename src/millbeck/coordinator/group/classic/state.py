"""The states of a classic group and the transitions between them.

    Empty ──join──▶ PreparingRebalance ──all joined──▶ CompletingRebalance ──leader synced──▶ Stable
      ▲                 │   ▲   ▲                          │                                    │
      └──no members─────┘   │   └──────member change───────┘                                    │
                            └──────────────────member change────────────────────────────────────┘

Any state moves to Dead when the group is deleted or its shard unloaded; Dead is final.
"""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """States of a classic group; values are the names shown to clients."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


CAN_REBALANCE = (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
"""States in which a new rebalance may start."""

ALLOWED_FROM: dict[GroupState, tuple[GroupState, ...]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: CAN_REBALANCE,
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
    GroupState.DEAD: tuple(GroupState),
}
"""For each state, the states it may be entered from."""
