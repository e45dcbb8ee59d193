"""The state of the quorum as its leader sees it: voters, observers and their progress (DescribeQuorum)."""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.raft.leading import progress_of
from millbeck.raft.machine import QuorumMachine
from millbeck.raft.roles import Leading, ReplicaProgress
from millbeck.raft.voters import ReplicaKey
from millbeck.records.control import VoterEndpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaDescription:
    """The progress of a voter or observer. Times are wall-clock milliseconds; -1 is never."""

    key: ReplicaKey
    end_offset: int
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumDescription:
    leader_id: int
    epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]
    endpoints: dict[int, tuple[VoterEndpoint, ...]]
    """The voters' endpoints, as far as they are known."""


def describe_quorum(machine: QuorumMachine, *, now_ms: int, wall_ms: int) -> QuorumDescription | None:
    """Describe the quorum; None unless this node is the leader. ``now_ms`` is the monotonic time at ``wall_ms``."""
    role = machine.role_state
    if not isinstance(role, Leading):
        return None

    def describe(key: ReplicaKey, progress: ReplicaProgress | None) -> ReplicaDescription:
        if key.node_id == machine.node_id:
            end_offset = machine.log.end_offset
            return ReplicaDescription(key=key, end_offset=end_offset, last_fetch_ms=wall_ms, last_caught_up_ms=wall_ms)
        if progress is None:
            return ReplicaDescription(key=key, end_offset=-1)
        offset_ms = wall_ms - now_ms
        return ReplicaDescription(
            key=key,
            end_offset=progress.end_offset,
            last_fetch_ms=progress.last_fetch_ms + offset_ms if progress.last_fetch_ms >= 0 else -1,
            last_caught_up_ms=progress.last_caught_up_ms + offset_ms if progress.last_caught_up_ms >= 0 else -1,
        )

    voters = machine.history.latest
    return QuorumDescription(
        leader_id=machine.node_id,
        epoch=machine.epoch,
        high_watermark=machine.high_watermark,
        voters=tuple(describe(key, progress_of(role, key)) for key in voters.keys),
        observers=tuple(describe(key, role.progress[key]) for key in sorted(role.progress) if not voters.has(key)),
        endpoints={voter.node_id: voter.endpoints for voter in voters.voters if voter.endpoints},
    )
