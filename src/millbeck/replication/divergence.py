"""Log divergence between a leader and a reader, determined by leader epochs alone; the high watermark is not used,
because a replica's copy of it may be out of date.

A fetch has the offset to read from and the epoch of the record before it. The leader looks up the end of that epoch in
its own log. If it has no such epoch, or the epoch ended earlier, the reader has records that the leader does not have,
and the response has the last epoch they may share and its end offset (`divergence`). A follower then truncates its log
to the smaller of the two end offsets of that epoch (`truncation_offset`) and fetches again; each round removes at
least one epoch.
"""

from __future__ import annotations

from typing import NamedTuple

from millbeck.kernel.errors import OffsetOutOfRange
from millbeck.storage.log import Log


class EpochEnd(NamedTuple):
    """An epoch in the leader's log, and the offset after its last record."""

    epoch: int
    end_offset: int


def divergence(log: Log, fetch_offset: int, last_fetched_epoch: int) -> EpochEnd | None:
    """The last epoch and offset that the reader's log may share with this log, or None if it does not diverge. Raises
    OFFSET_OUT_OF_RANGE when epochs cannot decide it."""
    if last_fetched_epoch < 0:
        return None
    epoch, end_offset = log.end_offset_for_epoch(last_fetched_epoch)
    if epoch < 0:
        raise OffsetOutOfRange(f"{log.topic_partition} has no leader epoch {last_fetched_epoch}")
    if fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(f"offset {fetch_offset} is below the log start offset of {log.topic_partition}")
    if epoch >= last_fetched_epoch and end_offset >= fetch_offset:
        return None
    return EpochEnd(epoch, end_offset)


def truncation_offset(log: Log, leader: EpochEnd) -> int:
    """The offset to which a follower truncates its log when the leader's response says that they diverge."""
    epoch, end_offset = log.end_offset_for_epoch(leader.epoch)
    if epoch < 0:
        # No epoch in this log is as old: only the leader's end offset is known.
        return min(leader.end_offset, log.end_offset)
    if epoch < leader.epoch:
        # This log has nothing of that epoch. Truncate what came after the previous one, and ask the leader again.
        return min(end_offset, log.end_offset)
    return min(end_offset, leader.end_offset, log.end_offset)
