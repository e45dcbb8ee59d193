"""Events of a quorum member: the only input of its state machine."""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.raft.messages import Request, Response
from millbeck.raft.voters import VoterSet
from millbeck.records.control import KRaftVersion, Voters


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStarted:
    """The process has started and has read its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerExpired:
    """The machine's ``next_deadline_ms`` was reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAppended:
    """Records were appended: the log ends at ``end_offset``. ``changes`` are the new control records about voters."""

    end_offset: int
    changes: tuple[tuple[int, KRaftVersion | Voters], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFlushed:
    """The log is flushed to disk up to ``end_offset``."""

    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTruncated:
    """The log was truncated to ``end_offset``."""

    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTaken:
    """This node created a snapshot of its committed records below ``end_offset``."""

    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInstalled:
    """A fetched snapshot replaced the log, which is now empty and starts at ``end_offset``."""

    end_offset: int
    kraft_version: int
    voters: VoterSet | None
    """None if the snapshot has no voters (``kraft.version`` 0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReceived:
    """A request was received; a `SendResponse` with the same token is the response, at once or later."""

    token: int
    ask: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseReceived:
    """The response to a sent request; None after a timeout or connection error."""

    node_id: int
    ask: Request
    reply: Response | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRequested:
    """An operator upgrades ``kraft.version`` to 1; answered like a `RequestReceived`."""

    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResignRequested:
    """The controller on this node can no longer lead in ``epoch``."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownRequested:
    """The process is shutting down in a controlled way."""


Event = (
    ProcessStarted
    | TimerExpired
    | LogAppended
    | LogFlushed
    | LogTruncated
    | SnapshotTaken
    | SnapshotInstalled
    | RequestReceived
    | ResponseReceived
    | UpgradeRequested
    | ResignRequested
    | ShutdownRequested
)
