"""What the machine must know of its log to decide: where it ends, and where each epoch ended in it.

`LogView` is read only; the machine changes the log through effects. The two questions of replication are answered here,
by epochs and never by high watermarks: does a follower's log continue into the leader's, and where must it be cut if
it does not.
"""

from __future__ import annotations

from typing import Protocol

from millbeck.raft.messages import EpochEnd, SnapshotKey


class LogView(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def start_epoch(self) -> int:
        """The epoch of the last record before ``start_offset``, of which only a snapshot is left; 0 when none is."""

    @property
    def end_offset(self) -> int: ...

    @property
    def flushed_offset(self) -> int:
        """Everything below is on this node's disk."""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, or of the snapshot when nothing follows it; 0 when there is neither."""

    @property
    def snapshot(self) -> SnapshotKey | None:
        """The newest whole snapshot on disk."""

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch of the log that is not above ``epoch``, and where it ends."""


def end_of(log: LogView) -> EpochEnd:
    return EpochEnd(log.last_epoch, log.end_offset)


def snapshot_needed(log: LogView, offset: int, epoch: int) -> SnapshotKey | None:
    """The snapshot a follower must load first, because the log no longer holds what follows its own."""
    start = log.start_offset
    if start == 0 or (offset > start and epoch >= log.start_epoch) or (offset == start and epoch == log.start_epoch):
        return None
    return log.snapshot


def divergence(log: LogView, offset: int, epoch: int) -> EpochEnd | None:
    """Where a log that ends at ``offset`` in ``epoch`` leaves this one; None when it is a prefix of it."""
    if (offset, epoch) in ((0, 0), (log.start_offset, log.start_epoch)):
        return None
    end = log.end_of_epoch(epoch)
    if end.epoch != epoch or end.end_offset < offset:
        return end
    return None


def truncation_offset(log: LogView, diverging: EpochEnd) -> int:
    """How much of this log may agree with a leader's that says ``diverging``: cut there, then ask again."""
    own = log.end_of_epoch(diverging.epoch)
    if own.epoch == diverging.epoch:
        return min(own.end_offset, diverging.end_offset)
    return own.end_offset
