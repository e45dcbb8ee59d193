"""What happens to a member of the quorum: the only input of its machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The process is up and has read its log: where it ends, and the epoch of its last batch (0 when empty)."""

    log_end_offset: int
    log_last_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFlushed:
    """Everything below ``end_offset`` is on this node's disk."""

    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownRequested:
    """The process is about to end in good order."""


Event = Started | LogFlushed | ShutdownRequested
