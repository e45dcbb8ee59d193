"""The first pass: build the map from key to latest offset for the dirty part of the log.

Aborted records do not count, or they would supersede committed ones. The map ends with the last whole batch that fits;
the rest of the log is left for another round.
"""

from __future__ import annotations

from collections.abc import Callable

from millbeck.records.header import CODEC_MASK, CONTROL_BIT, TRANSACTIONAL_BIT
from millbeck.storage.compaction.job import CompactionJob, CompactionStats, SourceFile, SourceSegment, Throttle
from millbeck.storage.compaction.offset_map import OffsetMap
from millbeck.storage.compaction.payload import damaged, records_of
from millbeck.storage.compaction.source_reader import SourceReader
from millbeck.storage.compaction.transactions import CleanedTransactionMetadata


def build(
    job: CompactionJob,
    open_source: Callable[[SourceSegment], SourceFile],
    throttle: Throttle,
    statistics: CompactionStats,
) -> OffsetMap:
    """Build the map from the job's first dirty offset on. Raises `CompactionError` or OSError."""
    offset_map = OffsetMap(job.first_dirty_offset, job.map_bytes_max)
    transactions = CleanedTransactionMetadata(job.aborted)
    for source in job.sources:
        if source.next_base_offset <= job.first_dirty_offset:
            continue
        file = open_source(source)
        try:
            reader = SourceReader(source, file, job.read_bytes, throttle)
            is_complete = _add_source(reader, offset_map, transactions, statistics)
        finally:
            file.close()
        if not is_complete:
            break
        # Extend it to the next segment, across a gap that earlier rounds may have left at the end of this one.
        offset_map.latest_offset = source.next_base_offset - 1
    statistics.map_entries = offset_map.entry_count
    statistics.map_utilization = offset_map.utilization
    return offset_map


def _add_source(
    reader: SourceReader, offset_map: OffsetMap, transactions: CleanedTransactionMetadata, statistics: CompactionStats
) -> bool:
    """Add one source to the map; False when the map is full before its end."""
    while reader.advance():
        statistics.bytes_mapped += reader.size
        if reader.last_offset < offset_map.first_offset:
            continue
        attributes = reader.attributes
        count = reader.record_count
        is_noted = not attributes & CONTROL_BIT and count > 0
        if is_noted and attributes & TRANSACTIONAL_BIT:
            is_noted = not transactions.is_aborted(reader.producer_id, reader.base_offset)
        if is_noted:
            payload = records_of(reader)
            if not offset_map.has_room(count, len(payload) if attributes & CODEC_MASK else reader.size):
                return False
            if not offset_map.add(payload, count, reader.base_offset):
                raise damaged(reader, "its records are malformed")
            statistics.records_mapped += count
        offset_map.latest_offset = reader.last_offset
    return True
