"""Effects: actions that the state machine asks its driver to perform.

The effects of one step are executed in order, each before the next, and all of them before the next event is stepped.
An effect that changes the log is the last of its step, and the event that reports it (`LogAppended`, `LogTruncated`,
`SnapshotInstalled`) is the next one the machine gets.
"""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.raft.messages import FetchRequest, Request, Response, SnapshotKey, SnapshotRequest
from millbeck.raft.quorum_state import QuorumState
from millbeck.raft.voters import Leader
from millbeck.records.control import KRaftVersion, LeaderChange, VoterEndpoint, Voters


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistState:
    """Write the quorum-state file and sync it to disk, including the rename, before any later effect."""

    state: QuorumState


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendControl:
    """As leader of ``epoch``, append a control batch with these values. The first of an epoch is a LeaderChange."""

    values: tuple[LeaderChange | KRaftVersion | Voters, ...]
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendFetched:
    """As follower in ``epoch``, append the leader's batches at their offsets."""

    records: bytes
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTo:
    """Truncate the log to ``offset``, durably."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveHighWatermark:
    """Advance the high watermark: apply committed records and complete requests waiting for them."""

    high_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLeader:
    """The known leader or its epoch has changed; there may be none."""

    leader: Leader


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """Send a request to ``node_id`` at ``endpoint``; exactly one `ResponseReceived` follows. Negative ids are bootstrap
    servers."""

    node_id: int
    endpoint: VoterEndpoint
    ask: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResponse:
    """The response to the `RequestReceived` with ``token``."""

    token: int
    reply: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeFetch:
    """Answer a fetch from a replica whose log matches the leader's: send the following records, or wait for them within
    limits."""

    token: int
    ask: FetchRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSnapshot:
    """Send the bytes of the snapshot from the position on."""

    token: int
    ask: SnapshotRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSnapshotPart:
    """Write fetched bytes to the incomplete snapshot; position 0 restarts it."""

    snapshot: SnapshotKey
    position: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallSnapshot:
    """The snapshot is complete: rename it durably and restart the log, empty, at its end offset."""

    snapshot: SnapshotKey


Effect = (
    PersistState
    | AppendControl
    | AppendFetched
    | TruncateTo
    | MoveHighWatermark
    | ChangeLeader
    | SendRequest
    | SendResponse
    | ServeFetch
    | ServeSnapshot
    | WriteSnapshotPart
    | InstallSnapshot
)
