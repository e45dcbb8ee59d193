"""Appends of a follower: batches keep the offsets and epochs that the leader has assigned.

Checksums are verified. Offsets may have gaps (the leader's log may be compacted) and never go back. A batch with an
epoch above the one the follower fetches in ends the append, since the leader has changed while the batches were in
flight; so does a last batch cut short by the fetch's size limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.environment import Bytes
from millbeck.kernel.errors import CorruptMessage, RecordListTooLarge
from millbeck.records.crc import crc32c
from millbeck.records.header import CRC_START, HEADER_SIZE, BatchHeader, read_header
from millbeck.storage import rebuild
from millbeck.storage.staging import NO_APPEND_TIME, Staged

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState


class UnexpectedAppendOffset(Exception):
    """Replicated batches that begin before the log end offset."""

    def __init__(self, first_offset: int, end_offset: int) -> None:
        super().__init__(f"batches begin at offset {first_offset}, the log ends at {end_offset}")
        self.first_offset = first_offset
        self.end_offset = end_offset


def stage(log: LogState, batches: Bytes, leader_epoch: int, now_ms: int) -> None:
    """Stage all of the batches or none. Raises `CorruptMessage` or `UnexpectedAppendOffset`."""
    assert not log.has_staged, "a follower does not stage"
    view = memoryview(batches)
    position, end = 0, len(view)
    try:
        while end - position >= HEADER_SIZE:
            header = read_header(view, position)
            size = header.size_bytes
            if size > end - position:
                break
            batch = view[position : position + size]
            if crc32c(batch[CRC_START:]) != header.crc:
                raise CorruptMessage(f"batch at offset {header.base_offset} has a wrong checksum")
            if header.partition_leader_epoch > leader_epoch:
                break
            if header.base_offset < log.next_offset:
                raise UnexpectedAppendOffset(header.base_offset, log.next_offset)
            _stage_one(log, batch, header, now_ms)
            position += size
    except BaseException:
        log.discard_staged()
        raise


def _stage_one(log: LogState, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
    if header.size_bytes > log.segment_bytes:
        raise RecordListTooLarge(f"a batch of {header.size_bytes} bytes does not fit a segment")
    marker = rebuild.stage_replayed(log.producer_state, batch, header)
    staged = Staged(
        header.base_offset,
        header.last_offset,
        NO_APPEND_TIME,
        False,
        (batch,),
        header.size_bytes,
        header.max_timestamp,
        header.partition_leader_epoch,
        marker,
        header,
    )
    log.stage_replicated(staged, now_ms)
