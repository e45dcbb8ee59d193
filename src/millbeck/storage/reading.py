"""Lookup and reading of batches: at the tail by positions in memory, elsewhere by the index. A read returns whole
batches of one segment.

A slice ends at a batch boundary. When the size limit falls into a long run of batches, the slice ends at an index
entry, which needs no file access; headers are scanned only within one index interval.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import TYPE_CHECKING, Final

from millbeck.kernel.environment import FileSlice
from millbeck.kernel.errors import KafkaStorageError
from millbeck.storage import txn_index
from millbeck.storage.offset_index import CorruptIndex
from millbeck.storage.segment import BatchPosition, CorruptSegment, Segment
from millbeck.storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState


class _NotInTail(Enum):
    NOT_IN_TAIL = 0


NOT_IN_TAIL: Final = _NotInTail.NOT_IN_TAIL


class LogSlice(FileSlice):
    """Batches of one segment, all of them below ``upper_offset``; release it exactly once."""

    __slots__ = ("segment_base_offset", "upper_offset")

    def __init__(self, segment: Segment, position: int, size: int, upper_offset: int) -> None:
        handle = segment.handle
        self.file = handle.lease()
        self.position = position
        self.size = size
        self.release = handle.release
        self.segment_base_offset = segment.base_offset
        self.upper_offset = upper_offset


def read_tail(
    segment: Segment, offset: int, size_bytes_max: int, upto_offset: int, at_least_one: bool
) -> LogSlice | _NotInTail | None:
    """Read by the batch positions that the active segment keeps in memory, without accessing the file."""
    found = segment.tail_range(offset, upto_offset)
    if found is None:
        return NOT_IN_TAIL
    first, end = found
    if first >= end:
        return None
    positions = segment.tail_positions
    count = len(positions)
    start = positions[first]
    end_position = positions[end] if end < count else segment.size
    if end_position - start > size_bytes_max:
        end = bisect_right(positions, start + size_bytes_max, first, end) - 1
        if end <= first:
            if not at_least_one:
                return None
            end = first + 1
        end_position = positions[end] if end < count else segment.size
    return LogSlice(segment, start, end_position - start, segment.tail_next_offsets[end - 1])


def read_indexed(
    log: LogState, offset: int, size_bytes_max: int, upto_offset: int, at_least_one: bool, nowait: bool
) -> LogSlice | None:
    """Read by the index, continuing in later segments across gaps left by compaction."""
    index = log.segment_index_for(offset)
    try:
        while index < len(log.segments):
            segment = log.segments[index]
            upper = log.segments[index + 1].base_offset if index + 1 < len(log.segments) else log.end_offset
            if segment.base_offset >= upto_offset:
                return None
            start = find(log, segment, offset, nowait)
            if start is not None:
                if start.last_offset >= upto_offset:
                    return None
                return _slice(log, segment, start, size_bytes_max, upto_offset, upper, at_least_one, nowait)
            index += 1
    except CorruptSegment as damage:
        raise log.mark_corrupt(damage) from damage
    except OSError as error:
        raise KafkaStorageError(f"{log.topic_partition} cannot be read: {error}") from error
    return None


def find(log: LogState, segment: Segment, offset: int, nowait: bool = False) -> BatchPosition | None:
    """`Segment.find`, with a rebuild of the index when it is corrupt."""
    try:
        return segment.find(offset, nowait)
    except CorruptIndex as error:
        log.rebuild_indexes(segment, str(error))
        return segment.find(offset, nowait)


def _slice(
    log: LogState,
    segment: Segment,
    start: BatchPosition,
    size_bytes_max: int,
    upto_offset: int,
    upper_offset: int,
    at_least_one: bool,
    nowait: bool,
) -> LogSlice | None:
    limit = segment.size
    if upto_offset < upper_offset:
        beyond = find(log, segment, upto_offset, nowait)
        limit, upper_offset = (segment.size, upper_offset) if beyond is None else (beyond.position, upto_offset)
    if limit - start.position <= size_bytes_max:
        return LogSlice(segment, start.position, limit - start.position, upper_offset)
    if start.size > size_bytes_max:
        return LogSlice(segment, start.position, start.size, start.last_offset + 1) if at_least_one else None
    cut = segment.offset_index(nowait).entry_at_most(start.position + size_bytes_max)
    if cut is not None and cut[1] > start.position:
        # The entry's batch is the first one excluded; its last offset is above all offsets before it.
        return LogSlice(segment, start.position, cut[1] - start.position, cut[0])
    end, upper_offset = start.position + start.size, start.last_offset + 1
    while end < limit:
        following = segment.walk(upper_offset, end, nowait)
        if following is None or following.position + following.size > start.position + size_bytes_max:
            break
        end, upper_offset = following.position + following.size, following.last_offset + 1
    return LogSlice(segment, start.position, end - start.position, upper_offset)


def aborted_transactions(log: LogState, start_offset: int, upper_offset: int) -> list[AbortedTransaction]:
    """See `Log.aborted_transactions`."""
    aborted: list[AbortedTransaction] = []
    for segment in log.segments[log.segment_index_for(start_offset) :]:
        try:
            entries = segment.aborted()
        except CorruptIndex as damage:
            log.rebuild_aborted(segment, str(damage))
            entries = segment.aborted()
        except OSError as error:
            raise KafkaStorageError(f"{log.topic_partition} cannot be read: {error}") from error
        if txn_index.overlapping(entries, start_offset, upper_offset, aborted):
            break
    return aborted
