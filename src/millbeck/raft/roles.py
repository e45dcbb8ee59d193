"""The roles of a quorum member and their state.

Roles and their transitions (a higher epoch is always entered as unattached or follower):
- unattached: knows no leader. A voter -> prospective after its election timeout; an observer asks other nodes.
- prospective: requests pre-votes (KIP-996). -> candidate with a majority of pre-votes, else back.
- candidate: has incremented the epoch and voted for itself. -> leader with a majority, -> prospective if it has lost.
- leader: -> resigned if a majority no longer fetches, if it is no longer a voter, or when the process shuts down.
- follower: fetches. -> prospective (voters) or unattached (observers) after the fetch timeout.
- resigned: was leader, and sends EndQuorumEpoch. -> prospective after its election timeout.
A member that learns of a higher epoch leaves any role.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from millbeck.raft.messages import FetchRequest, Request, SnapshotKey
from millbeck.raft.voters import ReplicaKey, VoterSet
from millbeck.records.control import Voter, VoterEndpoint

NEVER_MS: Final = 1 << 62


class Role(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


@dataclass(slots=True)
class PendingRequest:
    """A request to one member, retried until it responds: at most one is in flight."""

    due_ms: int
    ask: Request | None = None
    """The request in flight."""

    @property
    def next_ms(self) -> int:
        return NEVER_MS if self.ask is not None else self.due_ms


@dataclass(slots=True)
class Unattached:
    deadline_ms: int
    """The time at which a voter starts an election."""
    search_ms: int
    """The time at which an observer asks the next node for the leader; voters wait for the leader's announcement."""
    searching: FetchRequest | None = None


@dataclass(slots=True)
class Election:
    """State of a prospective or candidate: the requests and the votes so far."""

    deadline_ms: int
    voters: VoterSet
    is_pre_vote: bool
    granted: dict[int, bool] = field(default_factory=dict)
    requests: dict[int, PendingRequest] = field(default_factory=dict)
    unreachable: dict[int, None] = field(default_factory=dict)
    """Voters that did not respond to the last request."""
    rests_until_ms: int = NEVER_MS
    """The time at which a lost election is repeated."""

    @property
    def is_won(self) -> bool:
        return sum(self.granted.values()) >= self.voters.majority

    @property
    def is_lost(self) -> bool:
        refused_count = len(self.granted) - sum(self.granted.values())
        return len(self.voters.voters) - refused_count < self.voters.majority

    @property
    def is_split(self) -> bool:
        """Whether all reachable voters have responded to a candidate, and some refused."""
        heard_count = len(self.granted) + len(self.unreachable)
        is_refused = not all(self.granted.values())
        return not self.is_pre_vote and not self.is_won and is_refused and heard_count >= len(self.voters.voters)


@dataclass(slots=True)
class ReplicaProgress:
    """A replica's progress as known to the leader."""

    key: ReplicaKey
    end_offset: int = -1
    """Everything below is on that replica's disk; -1 before its first fetch in this epoch."""
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_at_fetch: int = -1


@dataclass(slots=True)
class VoterChange:
    """A voter change in progress; there is at most one."""

    token: int
    deadline_ms: int
    voter: Voter | None = None
    """The replica to add, while the response to its ApiVersions request is awaited."""
    acknowledge_when_committed: bool = True
    offset: int = -1
    """Offset of the new voter set in the log, once appended."""


@dataclass(slots=True)
class Leading:
    epoch_start_offset: int
    grants: tuple[int, ...]
    check_quorum_deadline_ms: int
    fetched_ids: list[int] = field(default_factory=list)
    """Voters that have fetched since the deadline was set."""
    progress: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    announcements: dict[int, PendingRequest] = field(default_factory=dict)
    change: VoterChange | None = None
    upgrade_voters: dict[int, Voter] = field(default_factory=dict)
    """Voters' updates received while ``kraft.version`` was 0: needed to upgrade it."""


@dataclass(slots=True)
class FetchingSnapshot:
    snapshot: SnapshotKey
    position: int = 0


@dataclass(slots=True)
class Following:
    leader_id: int
    endpoint: VoterEndpoint | None
    deadline_ms: int
    has_fetched: bool = False
    fetch: PendingRequest = field(default_factory=lambda: PendingRequest(0))
    is_flushing: bool = False
    """Whether fetched records are not flushed yet; the next fetch must wait, since it would acknowledge them."""
    failed_fetches: int = 0
    """The number of failed fetches since the leader's last response."""
    known_high_watermark: int = -1
    """The leader's last high watermark; it applies up to the end of the records appended from that response."""
    snapshot: FetchingSnapshot | None = None
    update: PendingRequest = field(default_factory=lambda: PendingRequest(NEVER_MS))
    """The request that updates this voter's endpoints or asks to become a voter."""


@dataclass(slots=True)
class Resigned:
    deadline_ms: int
    successors: tuple[ReplicaKey, ...] = ()
    end_epoch_requests: dict[int, PendingRequest] = field(default_factory=dict)


RoleState = Unattached | Election | Leading | Following | Resigned
