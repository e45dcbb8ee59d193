"""Read-only view of the log: its end offset, and the end offset of each epoch.

The machine changes the log only through effects. Two questions of replication are answered here, by epochs and never by
high watermarks: whether a follower's log is a prefix of the leader's, and where to truncate it if it is not.
"""

from __future__ import annotations

from typing import Protocol

from millbeck.raft.messages import EpochEnd, SnapshotKey


class LogView(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def start_epoch(self) -> int:
        """The epoch of the last record before ``start_offset``, which only a snapshot contains; 0 if there is none."""

    @property
    def end_offset(self) -> int: ...

    @property
    def flushed_offset(self) -> int:
        """Everything below this offset is on this node's disk."""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, or of the snapshot if no record follows it; 0 if there is neither."""

    @property
    def snapshot(self) -> SnapshotKey | None:
        """The newest complete snapshot on disk."""

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch in the log up to ``epoch``, and its end offset."""


def end_of(log: LogView) -> EpochEnd:
    return EpochEnd(log.last_epoch, log.end_offset)


def snapshot_needed(log: LogView, offset: int, epoch: int) -> SnapshotKey | None:
    """The snapshot a follower must load first because the log no longer contains the records after its own."""
    start = log.start_offset
    if start == 0 or (offset > start and epoch >= log.start_epoch) or (offset == start and epoch == log.start_epoch):
        return None
    return log.snapshot


def divergence(log: LogView, offset: int, epoch: int) -> EpochEnd | None:
    """The point where a log that ends at ``offset`` in ``epoch`` diverges from this one; None if it is a prefix."""
    if (offset, epoch) in ((0, 0), (log.start_offset, log.start_epoch)):
        return None
    end = log.end_of_epoch(epoch)
    if end.epoch != epoch or end.end_offset < offset:
        return end
    return None


def truncation_offset(log: LogView, diverging: EpochEnd) -> int:
    """The offset to truncate to, up to which this log may match that of a leader that returned ``diverging``."""
    own = log.end_of_epoch(diverging.epoch)
    if own.epoch == diverging.epoch:
        return min(own.end_offset, diverging.end_offset)
    return own.end_offset
