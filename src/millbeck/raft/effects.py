"""What the machine wants done. Effects of one step are carried out in order, each before the next is begun, and all of
them before the next event is stepped.

What changes the log is the last effect of its step, and the event that tells of it (`LogAppended`, `LogTruncated`,
`SnapshotInstalled`) is the next one the machine sees.
"""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.raft.messages import Ask, FetchAsk, Reply, SnapshotAsk, SnapshotKey
from millbeck.raft.quorum_state import QuorumState
from millbeck.raft.voters import Leader
from millbeck.records.control import KRaftVersion, LeaderChange, VoterEndpoint, Voters


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistState:
    """Write the state's file and have it on disk, rename included, before anything that comes after."""

    state: QuorumState


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendControl:
    """As leader of ``epoch``, append one control batch with these values. The first of an epoch is a LeaderChange."""

    values: tuple[LeaderChange | KRaftVersion | Voters, ...]
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendFetched:
    """As follower in ``epoch``, append the leader's batches with the offsets they have."""

    records: bytes
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTo:
    """Drop everything from ``offset`` on, durably."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveHighWatermark:
    """Everything below ``high_watermark`` is committed: apply it and answer who waits for it."""

    high_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLeader:
    """The leader this node knows of is another one now, or none, or leads in another epoch."""

    leader: Leader


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Ask ``node_id`` at ``endpoint``; one `Answered` follows, whatever happens. Negative ids are bootstrap servers."""

    node_id: int
    endpoint: VoterEndpoint
    ask: Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The reply to what was `Asked` under ``token``."""

    token: int
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeFetch:
    """The replica's log continues into ours: answer with what follows it, or wait for that within bounds."""

    token: int
    ask: FetchAsk


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSnapshot:
    """Answer with the bytes of the snapshot from the position on."""

    token: int
    ask: SnapshotAsk


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSnapshotPart:
    """Put fetched bytes into the unfinished snapshot; position 0 begins it anew."""

    snapshot: SnapshotKey
    position: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallSnapshot:
    """All parts are there: make it a snapshot, durably, and let the log begin at its end, empty."""

    snapshot: SnapshotKey


Effect = (
    PersistState
    | AppendControl
    | AppendFetched
    | TruncateTo
    | MoveHighWatermark
    | ChangeLeader
    | Send
    | Answer
    | ServeFetch
    | ServeSnapshot
    | WriteSnapshotPart
    | InstallSnapshot
)
