"""Appending as a follower: a leader's batches keep the offsets and epochs they have.

Checksums are verified. Offsets may jump (the leader's log may be compacted) and never go back. Batches of an epoch
above the one the follower fetches in end the append, since the leader they come from has changed while they were on
their way; so does a tail that the fetch's size limit has cut off.
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
    from millbeck.storage.log import Log


class UnexpectedAppendOffset(Exception):
    """Replicated batches that do not continue this log: they begin before its end."""

    def __init__(self, first_offset: int, end_offset: int) -> None:
        super().__init__(f"batches begin at offset {first_offset}, the log ends at {end_offset}")
        self.first_offset = first_offset
        self.end_offset = end_offset


def append(log: Log, batches: Bytes, leader_epoch: int, now_ms: int) -> int:
    """All of them or none. Raises `CorruptMessage`, `UnexpectedAppendOffset`, `KafkaStorageError`."""
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
                raise CorruptMessage(f"batch at offset {header.base_offset} does not have the checksum it claims")
            if header.partition_leader_epoch > leader_epoch:
                break
            if header.base_offset < log.next_offset:
                raise UnexpectedAppendOffset(header.base_offset, log.next_offset)
            _stage(log, batch, header, now_ms)
            position += size
    except BaseException:
        log.discard_staged()
        raise
    log.write_staged()
    return log.end_offset


def _stage(log: Log, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
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
    log.stage_as_is(staged, now_ms)
