"""What members of the quorum ask of each other, and what they answer: the protocol without its bytes.

Every answer names the leader and epoch its sender knows of, so that whoever asked the wrong node, or in an old epoch,
learns better. ``error_code`` is Kafka's; the errors that members act upon are named here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from millbeck.kernel.errors import (
    BrokerNotAvailable,
    FencedLeaderEpoch,
    InvalidRequest,
    InvalidVoterKey,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft.voters import Leader, ReplicaKey
from millbeck.records.control import Voter, VoterEndpoint

NO_ERROR: Final = 0
FENCED_LEADER_EPOCH: Final = FencedLeaderEpoch.code
UNKNOWN_LEADER_EPOCH: Final = UnknownLeaderEpoch.code
NOT_LEADER: Final = NotLeaderOrFollower.code
INVALID_REQUEST: Final = InvalidRequest.code
INVALID_VOTER_KEY: Final = InvalidVoterKey.code
NOT_AVAILABLE: Final = BrokerNotAvailable.code

NO_HIGH_WATERMARK: Final = -1
NOBODY: Final = ReplicaKey(-1, ZERO_UUID)


class EpochEnd(NamedTuple):
    """An epoch and the offset after its last record in somebody's log. Compares as Raft compares logs."""

    epoch: int
    end_offset: int


class SnapshotKey(NamedTuple):
    """The first offset that is not in the snapshot, and the epoch of the last that is."""

    end_offset: int
    epoch: int


NO_SNAPSHOT: Final = SnapshotKey(-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteAsk:
    """A candidate's call for a vote. A pre-vote asks whether one would be given, and promises nothing (KIP-996)."""

    epoch: int
    candidate: ReplicaKey
    log_end: EpochEnd
    is_pre_vote: bool = False
    voter: ReplicaKey = NOBODY
    """Whom it is meant for: another directory of that node must not answer. `NOBODY` is not checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpochAsk:
    """A new leader says so."""

    epoch: int
    leader_id: int
    endpoints: tuple[VoterEndpoint, ...] = ()
    voter: ReplicaKey = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEpochAsk:
    """A leader resigns. ``successors`` are the voters that should stand first, best first."""

    epoch: int
    leader_id: int
    endpoints: tuple[VoterEndpoint, ...] = ()
    successors: tuple[ReplicaKey, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchAsk:
    """A replica asks for what follows its log, and thereby says up to where it has everything on disk."""

    epoch: int
    replica: ReplicaKey
    offset: int
    last_epoch: int
    high_watermark: int = NO_HIGH_WATERMARK


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotAsk:
    epoch: int
    replica: ReplicaKey
    snapshot: SnapshotKey
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsAsk:
    """What a replica that is to become a voter can do: its range of ``kraft.version``."""

    replica: ReplicaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class AddVoterAsk:
    voter: Voter
    """Its versions are not known yet: the leader asks the replica itself."""
    acknowledge_when_committed: bool = True
    timeout_ms: int = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveVoterAsk:
    voter: ReplicaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterAsk:
    """A voter says where it listens and what it can do."""

    epoch: int
    voter: Voter


Ask = (
    VoteAsk
    | BeginEpochAsk
    | EndEpochAsk
    | FetchAsk
    | SnapshotAsk
    | VersionsAsk
    | AddVoterAsk
    | RemoveVoterAsk
    | UpdateVoterAsk
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What every answer says, and all that BeginEpoch, EndEpoch, and the changes of voters are answered with."""

    error_code: int = NO_ERROR
    message: str = ""
    leader: Leader = field(default_factory=Leader)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteReply(Reply):
    is_granted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchReply(Reply):
    """Records, or where the asker's log leaves the leader's, or which snapshot it needs."""

    high_watermark: int = NO_HIGH_WATERMARK
    diverging: EpochEnd | None = None
    snapshot: SnapshotKey | None = None
    records: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReply(Reply):
    snapshot: SnapshotKey = NO_SNAPSHOT
    size_bytes: int = 0
    position: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsReply(Reply):
    kraft_version_min: int = 0
    kraft_version_max: int = 0
