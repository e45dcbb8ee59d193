"""What the machine wants done. Effects of one step are carried out in order, each before the next is begun."""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.raft.quorum_state import QuorumState
from millbeck.records.control import LeaderChange


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistState:
    """Write the state's file and have it on disk, rename included, before anything that comes after."""

    state: QuorumState


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendLeaderChange:
    """Append the first batch of an epoch: a control batch with this value."""

    value: LeaderChange
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveHighWatermark:
    """Everything below ``high_watermark`` is committed: apply it and answer who waits for it."""

    high_watermark: int


Effect = PersistState | AppendLeaderChange | MoveHighWatermark
