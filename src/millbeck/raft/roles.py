"""What a member of the quorum is, and what it must remember while it is that.

Roles and the ways between them (every way into a higher epoch leads through unattached or follower):
- unattached: knows no leader. A voter -> prospective when its election timeout passes; an observer asks around.
- prospective: asks the others whether they would vote (KIP-996). -> candidate with a majority's yes, else back.
- candidate: has raised the epoch and voted for itself. -> leader with a majority, -> prospective when it has lost.
- leader: -> resigned when a majority no longer fetches, when it is no voter any more, or when the process is to stop.
- follower: fetches. -> prospective (voters) or unattached (observers) when the leader is silent for too long.
- resigned: was leader, and tells the others. -> prospective when its election timeout passes.
Whoever hears of a higher epoch leaves every role for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from millbeck.raft.messages import Ask, FetchAsk, SnapshotKey
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
class Errand:
    """Something to be asked of one member until it has answered: at most one ask is on its way at a time."""

    due_ms: int
    ask: Ask | None = None
    """What is on its way."""

    @property
    def next_ms(self) -> int:
        return NEVER_MS if self.ask is not None else self.due_ms


@dataclass(slots=True)
class Unattached:
    deadline_ms: int
    """When a voter asks for an election."""
    search_ms: int
    """When to ask the next node who leads; voters wait until the leader tells them."""
    searching: FetchAsk | None = None


@dataclass(slots=True)
class Election:
    """Prospective or candidate: who was asked, and who said what."""

    deadline_ms: int
    voters: VoterSet
    is_pre_vote: bool
    granted: dict[int, bool] = field(default_factory=dict)
    errands: dict[int, Errand] = field(default_factory=dict)
    unreachable: dict[int, None] = field(default_factory=dict)
    """Voters that gave no answer when they were asked last."""
    rests_until_ms: int = NEVER_MS
    """An election that is lost already: when to begin again."""

    @property
    def is_won(self) -> bool:
        return sum(self.granted.values()) >= self.voters.majority

    @property
    def is_lost(self) -> bool:
        refused_count = len(self.granted) - sum(self.granted.values())
        return len(self.voters.voters) - refused_count < self.voters.majority

    @property
    def is_split(self) -> bool:
        """Whether a candidate has heard from everybody who can be reached, and some of them voted otherwise."""
        heard_count = len(self.granted) + len(self.unreachable)
        is_refused = not all(self.granted.values())
        return not self.is_pre_vote and not self.is_won and is_refused and heard_count >= len(self.voters.voters)


@dataclass(slots=True)
class Progress:
    """What a leader knows of a replica."""

    key: ReplicaKey
    end_offset: int = -1
    """Everything below is on that replica's disk; -1 before it has fetched in this epoch."""
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_at_fetch: int = -1


@dataclass(slots=True)
class VoterChange:
    """A change of the voters that is under way; there is never more than one."""

    token: int
    deadline_ms: int
    voter: Voter | None = None
    """A replica that is to be added and was asked for its versions."""
    acknowledge_when_committed: bool = True
    offset: int = -1
    """Where the new set stands in the log, once it does."""


@dataclass(slots=True)
class Leading:
    epoch_start_offset: int
    grants: tuple[int, ...]
    check_quorum_deadline_ms: int
    fetched_ids: list[int] = field(default_factory=list)
    """Voters that have fetched since the deadline was set."""
    progress: dict[ReplicaKey, Progress] = field(default_factory=dict)
    announcements: dict[int, Errand] = field(default_factory=dict)
    change: VoterChange | None = None
    upgrade_voters: dict[int, Voter] = field(default_factory=dict)
    """What voters said of themselves while ``kraft.version`` was 0: what raising it needs."""


@dataclass(slots=True)
class SnapshotFetch:
    snapshot: SnapshotKey
    position: int = 0


@dataclass(slots=True)
class Following:
    leader_id: int
    endpoint: VoterEndpoint | None
    deadline_ms: int
    has_fetched: bool = False
    fetch: Errand = field(default_factory=lambda: Errand(0))
    is_flushing: bool = False
    """What was fetched is appended and not on disk yet: the next fetch would claim more than there is."""
    failed_fetches: int = 0
    """Since the leader's last answer."""
    known_high_watermark: int = -1
    """What the leader said last; it counts as far as what came with it is appended."""
    snapshot: SnapshotFetch | None = None
    update: Errand = field(default_factory=lambda: Errand(NEVER_MS))
    """Telling the leader where this voter listens, or asking to be a voter."""


@dataclass(slots=True)
class Resigned:
    deadline_ms: int
    successors: tuple[ReplicaKey, ...] = ()
    farewells: dict[int, Errand] = field(default_factory=dict)


RoleState = Unattached | Election | Leading | Following | Resigned
