"""Offset lookup by timestamp, for ListOffsets.

By time: the first record, in offset order, whose timestamp is at least the requested one, at or after the log start
offset. Largest timestamp: the first record that has it. Both results have the leader epoch of the batch, -1 when it
has none. With ``nowait`` neither blocks on the disk: `ColdRead` has the job that loads the missing data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millbeck.kernel.errors import KafkaStorageError
from millbeck.records.batch import BatchHeader, records_of
from millbeck.storage.offset_index import CorruptIndex
from millbeck.storage.reading import find
from millbeck.storage.segment import CorruptSegment, Segment

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState

NO_TIMESTAMP = -1


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def find_offset_by_timestamp(
    log: LogState, timestamp: int, upto_offset: int, nowait: bool = False
) -> TimestampOffset | None:
    """The first record with at least ``timestamp``; None when there is none below ``upto_offset``."""
    if log.offline_reason is not None:
        raise log.offline_error()
    try:
        for segment in log.segments[log.segment_index_for(log.log_start_offset) :]:
            if largest_timestamp(log, segment, nowait) >= timestamp:
                found = _search(log, segment, timestamp, nowait)
                if found is not None:
                    return found if found.offset < upto_offset else None
    except CorruptSegment as error:
        raise log.mark_corrupt(error) from error
    except OSError as error:
        raise KafkaStorageError(f"{log.topic_partition} cannot be read: {error}") from error
    return None


def find_offset_of_max_timestamp(log: LogState, nowait: bool = False) -> TimestampOffset | None:
    """The first record with the largest timestamp in the log; None when the log is empty or has no timestamps."""
    if log.offline_reason is not None:
        raise log.offline_error()
    try:
        newest = max(log.segments, key=lambda segment: largest_timestamp(log, segment, nowait))
        timestamp = largest_timestamp(log, newest, nowait)
        if timestamp < 0:
            return None
        start = find(log, newest, newest.max_timestamp_offset, nowait)
        for position, header in newest.headers(start.position if start is not None else 0, nowait):
            if header.max_timestamp == timestamp and header.record_count:
                return _first_record(newest, position, header, timestamp, 0, nowait)
        return _walk_for_max_timestamp(log, nowait)
    except CorruptSegment as error:
        raise log.mark_corrupt(error) from error
    except OSError as error:
        raise KafkaStorageError(f"{log.topic_partition} cannot be read: {error}") from error
    return None


def _walk_for_max_timestamp(log: LogState, nowait: bool) -> TimestampOffset | None:
    """Scan all batches with records: the largest timestamp in the index is that of a batch emptied by compaction."""
    largest: tuple[Segment, int, BatchHeader] | None = None
    for segment in log.segments:
        for position, header in segment.headers(0, nowait):
            if header.record_count and (largest is None or header.max_timestamp > largest[2].max_timestamp):
                largest = segment, position, header
    if largest is None or largest[2].max_timestamp < 0:
        return None
    return _first_record(*largest, largest[2].max_timestamp, 0, nowait)


def largest_timestamp(log: LogState, segment: Segment, nowait: bool = False) -> int:
    """`Segment.largest_timestamp`, with a rebuild of the index when it is corrupt."""
    try:
        return segment.largest_timestamp(nowait)
    except CorruptIndex as error:
        log.rebuild_indexes(segment, str(error))
        return segment.largest_timestamp()


def _search(log: LogState, segment: Segment, timestamp: int, nowait: bool) -> TimestampOffset | None:
    try:
        offset = segment.time_index(nowait).offset_before(timestamp)
    except CorruptIndex as error:
        log.rebuild_indexes(segment, str(error))
        offset = segment.time_index().offset_before(timestamp)
    start = find(log, segment, max(offset, log.log_start_offset), nowait)
    if start is None:
        return None
    for position, header in segment.headers(start.position, nowait):
        if header.max_timestamp >= timestamp:
            found = _first_record(segment, position, header, timestamp, log.log_start_offset, nowait)
            if found is not None:
                return found
    return None


def _first_record(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start_offset: int, nowait: bool
) -> TimestampOffset | None:
    batch = segment.read_bytes(header.size_bytes, position, nowait)
    for record in records_of(batch, check_crc=False):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None
