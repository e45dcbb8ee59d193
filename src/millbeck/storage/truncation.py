"""Truncation of a log, as a follower does when its log diverges from its leader's.

Whole segments are removed as in retention; the segment that contains the offset is truncated in place, with its
indexes. Producer state is rebuilt from the newest remaining snapshot and the batches after it.

Theory of operation. Removed batches must not come back after a crash behind new ones. So the checkpoints are lowered
to the new end before the truncation (`LogHome.lowering_job`), and no write is accepted after it until a flush has
synced it (`Log.must_settle`). A crash in between may bring back a part of the removed batches, and recovery truncates
the log at the first gap among them. `server.replicas.log_steps` runs these steps on the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.errors import KafkaStorageError
from millbeck.storage import rebuild
from millbeck.storage.offset_index import CorruptIndex
from millbeck.storage.reading import find
from millbeck.storage.retention import FileDeletion, remove_segment, remove_snapshots, rename_detached
from millbeck.storage.segment import CorruptSegment, Segment

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState


def cut_to(log: LogState, offset: int) -> list[FileDeletion]:
    """See `Log.cut_to`."""
    if offset >= log.end_offset:
        log.epochs.truncate_from_end(log.end_offset)
        return []
    if offset < log.segments[0].base_offset:
        return start_over_at(log, offset)
    try:
        return _cut(log, offset)
    except CorruptSegment as error:
        raise log.mark_corrupt(error) from error
    except OSError as error:
        log.directory_failed(f"{log.topic_partition} cannot be truncated to {offset}: {error}")
        raise KafkaStorageError(f"{log.topic_partition} cannot be truncated: {error}") from error


def _cut(log: LogState, offset: int) -> list[FileDeletion]:
    if log.swap is not None:
        log.swap.complete_or_roll_back()
    index = log.segment_index_for(offset)
    segment = log.segments[index]
    if segment.base_offset == offset and index:
        index -= 1
        segment = log.segments[index]
    gone = log.segments[index + 1 :]
    found = find(log, segment, offset) if not gone or gone[0].base_offset > offset else None
    end_offset = offset if found is None else min(offset, found.base_offset)
    removals = rename_detached(log)
    removals += [remove_segment(log, one) for one in reversed(gone)]
    _reactivate(log, segment, end_offset, segment.size if found is None else found.position)
    log.set_segments(log.segments[: index + 1])
    log.log_start_offset = min(log.log_start_offset, end_offset)
    log.epochs.truncate_from_end(end_offset)
    removals += remove_snapshots(log, lambda at: at <= end_offset)
    log.was_truncated(end_offset)
    log.durability.truncated_file(log)
    rebuild.producers(log)
    return removals


def _reactivate(log: LogState, segment: Segment, end_offset: int, size: int) -> None:
    """Make ``segment`` the active one again, truncated to ``size`` bytes with all offsets below ``end_offset``."""
    try:
        segment.make_active(created_ms=segment.created_ms, roll_jitter_ms=segment.roll_jitter_ms)
    except CorruptIndex as error:
        log.rebuild_indexes(segment, str(error))
        segment.make_active(created_ms=segment.created_ms, roll_jitter_ms=segment.roll_jitter_ms)
    segment.remove_index_files()
    segment.handle.get().truncate(size)
    segment.is_preallocated = False
    segment.shrink(size, end_offset)


def start_over_at(log: LogState, offset: int) -> list[FileDeletion]:
    """See `Log.start_over_at`."""
    try:
        if log.swap is not None:
            log.swap.complete_or_roll_back()
        removals = rename_detached(log)
        removals += [remove_segment(log, one) for one in reversed(log.segments)]
        removals += remove_snapshots(log, lambda at: False)
        fresh = log.create_segment(offset)
        fresh.prepare_file(log.config)
    except OSError as error:
        log.directory_failed(f"{log.topic_partition} cannot be truncated fully to start at {offset}: {error}")
        raise KafkaStorageError(f"{log.topic_partition} cannot be truncated: {error}") from error
    log.set_segments([fresh])
    log.epochs.clear()
    log.producer_state.clear()
    log.log_start_offset = offset
    log.was_truncated(offset)
    log.durability.truncated_file(log)
    return removals
