"""What happens to a member of the quorum: the only input of its machine."""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.raft.messages import Ask, Reply
from millbeck.raft.voters import VoterSet
from millbeck.records.control import KRaftVersion, Voters


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The process is up and has read its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed:
    """The machine's ``next_deadline_ms`` has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAppended:
    """The log ends at ``end_offset`` now. ``changes`` are the control records about voters among what is new."""

    end_offset: int
    changes: tuple[tuple[int, KRaftVersion | Voters], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFlushed:
    """Everything below ``end_offset`` is on this node's disk."""

    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTruncated:
    """The log was cut and ends at ``end_offset`` now."""

    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTaken:
    """This node has made a snapshot of what it has committed below ``end_offset``."""

    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInstalled:
    """A fetched snapshot has taken the place of the log, which is empty and begins at ``end_offset``."""

    end_offset: int
    kraft_version: int
    voters: VoterSet | None
    """None when the snapshot names no voters (``kraft.version`` 0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Somebody asks; an `Answer` with the same token is the reply, at once or later."""

    token: int
    ask: Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer to what was sent; None when there was none in time, or no connection."""

    node_id: int
    ask: Ask
    reply: Reply | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRequested:
    """The operator raises ``kraft.version`` to 1; answered like an `Asked`."""

    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResignRequested:
    """The controller on this node cannot lead in ``epoch`` any more."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownRequested:
    """The process is about to end in good order."""


Event = (
    Started
    | TimePassed
    | LogAppended
    | LogFlushed
    | LogTruncated
    | SnapshotTaken
    | SnapshotInstalled
    | Asked
    | Answered
    | UpgradeRequested
    | ResignRequested
    | ShutdownRequested
)
