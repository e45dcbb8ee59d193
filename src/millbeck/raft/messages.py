"""Requests and responses between quorum members, independent of their wire format.

Every response has the leader and epoch its sender knows, so that a sender with a wrong leader or old epoch is
corrected. ``error_code`` is Kafka's; the errors that members act on are named here.
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
    """An epoch and its end offset in a log. Ordered as Raft compares logs."""

    epoch: int
    end_offset: int


class SnapshotKey(NamedTuple):
    """Identifies a snapshot: its end offset (exclusive) and the epoch of its last record."""

    end_offset: int
    epoch: int


NO_SNAPSHOT: Final = SnapshotKey(-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    """A candidate's request for a vote. A pre-vote asks whether one would be granted, without a promise (KIP-996)."""

    epoch: int
    candidate: ReplicaKey
    log_end: EpochEnd
    is_pre_vote: bool = False
    voter: ReplicaKey = NOBODY
    """The intended voter; a replica with another directory id must not answer. `NOBODY` disables the check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpochRequest:
    """A new leader announces its epoch."""

    epoch: int
    leader_id: int
    endpoints: tuple[VoterEndpoint, ...] = ()
    voter: ReplicaKey = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEpochRequest:
    """A leader resigns. ``successors`` are the preferred next leaders, best first."""

    epoch: int
    leader_id: int
    endpoints: tuple[VoterEndpoint, ...] = ()
    successors: tuple[ReplicaKey, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """A replica fetches records after its log, which acknowledges everything below the offset as flushed."""

    epoch: int
    replica: ReplicaKey
    offset: int
    last_epoch: int
    high_watermark: int = NO_HIGH_WATERMARK


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRequest:
    epoch: int
    replica: ReplicaKey
    snapshot: SnapshotKey
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsRequest:
    """Asks a new voter for its supported range of ``kraft.version``."""

    replica: ReplicaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class AddVoterRequest:
    voter: Voter
    """Adds a voter. Its supported versions are not known yet: the leader asks the replica itself."""
    acknowledge_when_committed: bool = True
    timeout_ms: int = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveVoterRequest:
    voter: ReplicaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterRequest:
    """A voter updates its endpoints and supported versions."""

    epoch: int
    voter: Voter


Request = (
    VoteRequest
    | BeginEpochRequest
    | EndEpochRequest
    | FetchRequest
    | SnapshotRequest
    | VersionsRequest
    | AddVoterRequest
    | RemoveVoterRequest
    | UpdateVoterRequest
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Fields of every response, and the whole response to BeginEpoch, EndEpoch and voter changes."""

    error_code: int = NO_ERROR
    message: str = ""
    leader: Leader = field(default_factory=Leader)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponse(Response):
    is_granted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse(Response):
    """Records, or where the follower's log diverges, or which snapshot it needs."""

    high_watermark: int = NO_HIGH_WATERMARK
    diverging: EpochEnd | None = None
    snapshot: SnapshotKey | None = None
    records: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotResponse(Response):
    snapshot: SnapshotKey = NO_SNAPSHOT
    size_bytes: int = 0
    position: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsResponse(Response):
    kraft_version_min: int = 0
    kraft_version_max: int = 0
