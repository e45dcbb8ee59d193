"""Where two logs part: decided by leader epochs alone, never by a high watermark, which lags behind what is committed.

A reader says from where it wants to read and in which epoch the record before that was written. The leader looks where
that epoch ended in its own log. If it knows no such epoch, or it ended earlier, the reader has records the leader does
not have, and is told the last epoch they may share and its end (`divergence`). A follower then cuts its log to the
smaller of the two ends of that epoch (`truncation_offset`) and asks again; each round leaves an epoch behind.
"""

from __future__ import annotations

from typing import NamedTuple

from millbeck.kernel.errors import OffsetOutOfRange
from millbeck.storage.log import Log


class EpochEnd(NamedTuple):
    """An epoch that a leader's log has, and the offset after its last record."""

    epoch: int
    end_offset: int


def divergence(log: Log, fetch_offset: int, last_fetched_epoch: int) -> EpochEnd | None:
    """Where a reader's history leaves ours, if it does. Raises OFFSET_OUT_OF_RANGE when epochs cannot tell."""
    if last_fetched_epoch < 0:
        return None
    epoch, end_offset = log.end_offset_for_epoch(last_fetched_epoch)
    if epoch < 0:
        raise OffsetOutOfRange(f"{log.topic_partition} has never been in epoch {last_fetched_epoch}")
    if fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(f"offset {fetch_offset} lies before the start of {log.topic_partition}")
    if epoch >= last_fetched_epoch and end_offset >= fetch_offset:
        return None
    return EpochEnd(epoch, end_offset)


def truncation_offset(log: Log, leader: EpochEnd) -> int:
    """To where a follower cuts its log when the leader has said that they diverge."""
    epoch, end_offset = log.end_offset_for_epoch(leader.epoch)
    if epoch < 0:
        # Nothing here is as old as that epoch: the leader's end of it is all there is to go by.
        return min(leader.end_offset, log.end_offset)
    if epoch < leader.epoch:
        # We have nothing of that epoch. What came after the one before it goes, and the leader is asked again.
        return min(end_offset, log.end_offset)
    return min(end_offset, leader.end_offset, log.end_offset)
