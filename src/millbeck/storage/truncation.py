"""Cutting a log's end off: what a follower does when its leader's history differs.

Whole segments go as in retention; the segment that holds the offset is cut in place, its indexes with it. Producers are
rebuilt from the newest snapshot that is left and the batches after it.

Theory of operation. Batches of the old history must not come back after a crash behind those of the new one. So no
checkpoint claims more than the new end before the cut (`LogHome.lowering_job`), and no write is taken after it until a
flush has synced it (`Log.must_settle`). In between, a crash may bring back some of the old end, and recovery cuts it
where it has a hole. `Log.truncate_to` does all of it in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.errors import KafkaStorageError
from millbeck.storage import rebuild
from millbeck.storage.offset_index import CorruptIndex
from millbeck.storage.reading import find
from millbeck.storage.retention import Removal, remove_detached, remove_segment, remove_snapshots
from millbeck.storage.segment import CorruptSegment, Segment

if TYPE_CHECKING:
    from millbeck.storage.log import Log


def cut_to(log: Log, offset: int) -> list[Removal]:
    """See `Log.cut_to`."""
    if offset >= log.end_offset:
        log.epochs.truncate_from_end(log.end_offset)
        return []
    if offset < log.segments[0].base_offset:
        return start_over_at(log, offset)
    try:
        return _cut(log, offset)
    except CorruptSegment as error:
        raise log.found_corrupt(error) from error
    except OSError as error:
        log.directory_failed(f"{log.topic_partition} cannot be truncated to {offset}: {error}")
        raise KafkaStorageError(f"{log.topic_partition} cannot be truncated: {error}") from error


def _cut(log: Log, offset: int) -> list[Removal]:
    if log.swap is not None:
        log.swap.settle()
    index = log.segment_index_for(offset)
    segment = log.segments[index]
    if segment.base_offset == offset and index:
        index -= 1
        segment = log.segments[index]
    gone = log.segments[index + 1 :]
    found = find(log, segment, offset) if not gone or gone[0].base_offset > offset else None
    end_offset = offset if found is None else min(offset, found.base_offset)
    removals = remove_detached(log)
    removals += [remove_segment(log, one) for one in reversed(gone)]
    _reactivate(log, segment, end_offset, segment.size if found is None else found.position)
    log.set_segments(log.segments[: index + 1])
    log.log_start_offset = min(log.log_start_offset, end_offset)
    log.epochs.truncate_from_end(end_offset)
    removals += remove_snapshots(log, lambda at: at <= end_offset)
    log.was_truncated(end_offset)
    log.durability.note_cut()
    rebuild.producers(log)
    return removals


def _reactivate(log: Log, segment: Segment, end_offset: int, size: int) -> None:
    """Make ``segment`` the active one again, with ``size`` bytes that end before ``end_offset``."""
    try:
        segment.make_active(created_ms=segment.created_ms, roll_jitter_ms=segment.roll_jitter_ms)
    except CorruptIndex as error:
        log.rebuild_indexes(segment, str(error))
        segment.make_active(created_ms=segment.created_ms, roll_jitter_ms=segment.roll_jitter_ms)
    segment.remove_index_files()
    segment.handle.get().truncate(size)
    segment.is_preallocated = False
    segment.shrink(size, end_offset)


def start_over_at(log: Log, offset: int) -> list[Removal]:
    """See `Log.start_over_at`."""
    try:
        if log.swap is not None:
            log.swap.settle()
        removals = remove_detached(log)
        removals += [remove_segment(log, one) for one in reversed(log.segments)]
        removals += remove_snapshots(log, lambda at: False)
        fresh = log.create_segment(offset)
        fresh.prepare_file(log.config)
    except OSError as error:
        log.directory_failed(f"{log.topic_partition} cannot start over at {offset}: {error}")
        raise KafkaStorageError(f"{log.topic_partition} cannot be truncated: {error}") from error
    log.set_segments([fresh])
    log.epochs.clear()
    log.producer_state.clear()
    log.log_start_offset = offset
    log.was_truncated(offset)
    log.durability.note_cut()
    return removals
