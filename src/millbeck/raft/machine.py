"""The quorum of one, as a state machine: events in, effects out.

A node that is the only voter needs nobody's vote, but it takes the same steps as any other so that its log and its
``quorum-state`` read the same: it raises the epoch, votes for itself and has that on disk, becomes leader, and appends
a LeaderChange as the first record of its epoch. What it has flushed is committed.

Roles and the ways between them
- unattached -> candidate: at start, since there is nobody to wait for
- candidate -> leader: a majority (itself) has voted
- leader -> resigned: the process is asked to stop
Nothing leads back within one process: an epoch is never led twice, because the next process begins with the next epoch
(KAFKA-10527 tells what happens otherwise).

Quorums of more voters are refused here for now. They will add events for votes, fetches and timeouts, and effects that
send; the role, the epoch rules and the order of effects are meant to stay.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import assert_never

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft.effects import AppendLeaderChange, Effect, MoveHighWatermark, PersistState
from millbeck.raft.events import Event, LogFlushed, ShutdownRequested, Started
from millbeck.raft.quorum_state import NO_NODE, QuorumState
from millbeck.records.control import LeaderChange, VoterId


class Role(Enum):
    UNATTACHED = "unattached"
    CANDIDATE = "candidate"
    LEADER = "leader"
    RESIGNED = "resigned"


class QuorumNotSupported(Exception):
    """The voters are not just this node."""


class QuorumMachine:
    """One member of the quorum. ``state`` is what its file says, or what it will say once the effects are done."""

    __slots__ = ("epoch_start_offset", "high_watermark", "node_id", "role", "state", "voters")

    def __init__(self, *, node_id: int, voters: tuple[int, ...], state: QuorumState | None) -> None:
        if voters != (node_id,):
            raise QuorumNotSupported(
                f"node {node_id} can only be in a quorum of itself in this release; the voters are {list(voters)}"
            )
        self.node_id = node_id
        self.voters = voters
        self.state = state or QuorumState(current_voters=voters)
        self.role = Role.UNATTACHED
        self.epoch_start_offset = -1
        self.high_watermark = -1

    @property
    def epoch(self) -> int:
        return self.state.leader_epoch

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    def step(self, event: Event) -> list[Effect]:
        match event:
            case Started():
                effects = self._on_started(event)
            case LogFlushed():
                effects = self._on_flushed(event)
            case ShutdownRequested():
                effects = self._on_shutdown()
            case _:
                assert_never(event)
        self.check_invariants()
        return effects

    def check_invariants(self) -> None:
        if self.role is Role.LEADER:
            assert self.state.leader_id == self.node_id, f"leads, but the state names {self.state.leader_id}"
            assert self.epoch_start_offset >= 0, "leads without a first record of the epoch"
        assert self.high_watermark <= 0 or self.high_watermark > self.epoch_start_offset, (
            f"high watermark {self.high_watermark} does not reach into the epoch from {self.epoch_start_offset}"
        )

    def _on_started(self, event: Started) -> list[Effect]:
        assert self.role is Role.UNATTACHED, f"started while {self.role.value}"
        # The file can be older than the log when it was lost; an epoch in the log was led by someone.
        epoch = max(self.state.leader_epoch, event.log_last_epoch, 0) + 1
        candidate = replace(
            self.state,
            leader_epoch=epoch,
            leader_id=NO_NODE,
            voted_id=self.node_id,
            voted_directory_id=ZERO_UUID,
            current_voters=self.voters if self.state.version == 0 else (),
        )
        self.role = Role.CANDIDATE
        # Kafka's leaders drop their vote from the file: the leader's name says as much.
        self.state = replace(candidate, leader_id=self.node_id, voted_id=NO_NODE)
        self.role = Role.LEADER
        self.epoch_start_offset = event.log_end_offset
        voters = tuple(VoterId(node_id=voter) for voter in self.voters)
        change = LeaderChange(leader_id=self.node_id, voters=voters, granting_voters=voters)
        return [
            PersistState(state=candidate),
            PersistState(state=self.state),
            AppendLeaderChange(value=change, epoch=epoch),
        ]

    def _on_flushed(self, event: LogFlushed) -> list[Effect]:
        if self.role is not Role.LEADER or event.end_offset <= self.high_watermark:
            return []
        # A record of an older epoch is committed only together with one of this epoch (Raft, 5.4.2).
        if event.end_offset <= self.epoch_start_offset:
            return []
        self.high_watermark = event.end_offset
        return [MoveHighWatermark(high_watermark=event.end_offset)]

    def _on_shutdown(self) -> list[Effect]:
        self.role = Role.RESIGNED
        return []
