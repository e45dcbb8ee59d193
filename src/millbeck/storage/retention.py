"""Retention: remove old segments whole, and delete their files.

A segment is removed when the log start offset has passed it, when the log without it is still larger than
``retention.bytes``, or when its newest record is older than ``retention.ms``. Only the oldest segments are removed,
and never one that extends beyond the high watermark. When all are removed, an empty segment replaces them.

Theory of operation. Retention runs in steps, since between them something must be synced, which must not block the
event loop:

1. `target` returns the offset below which segments are removed. The state of their producers is kept in the snapshot
   at that offset; a flush makes it durable, and the recovery point passes the segments (`needs_flush_before`; usually a
   roll has requested it).
2. `detach` removes them from the log, so that no reader finds them any more. It removes only durable segments: on a
   full disk, where a flush may lack space, at least these are freed.
3. The directory's checkpoints are written with the new start (`LogHome.raising_job`): files that come back after a
   crash would look like a log with a gap if recovery began before them.
4. `rename_detached` renames the files to ``.deleted``; a `FileDeletion` unlinks them after ``file.delete.delay.ms``. A
   reader with a lease continues to read.

`server.replicas.log_steps` runs them on the event loop.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.environment import Files
from millbeck.kernel.errors import KafkaStorageError
from millbeck.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX, CorruptSegment, Segment
from millbeck.storage.timestamps import largest_timestamp

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState

logger = logging.getLogger(__name__)

DELETED_SUFFIX = ".deleted"


class FileDeletion:
    """Files that are no longer part of a log; `run` deletes them, off the event loop, once ``delay_ms`` has passed."""

    __slots__ = ("_files", "delay_ms", "paths")

    def __init__(self, files: Files, paths: list[str], delay_ms: int) -> None:
        self._files = files
        self.paths = paths
        self.delay_ms = delay_ms

    def run(self) -> None:
        """Delete the files. A file that is missing (its topic was deleted meanwhile) is no error."""
        for path in self.paths:
            try:
                self._files.unlink(path)
            except FileNotFoundError:
                pass


def target(log: LogState, now_ms: int, high_watermark: int) -> int:
    """The offset below which segments should be removed: the base offset of the first one kept, which may have to be
    rolled.
    """

    def is_below_start(segment: Segment, upper: int) -> bool:
        return upper <= log.log_start_offset

    count = _count(log, 0, high_watermark, is_below_start, takes_active=False)
    config = log.config
    if config.is_deleted and config.retention_bytes >= 0:
        excess = sum(segment.size for segment in log.segments[count:]) - config.retention_bytes

        def is_excess(segment: Segment, upper: int) -> bool:
            nonlocal excess
            if excess < segment.size:
                return False
            excess -= segment.size
            return True

        count = _count(log, count, high_watermark, is_excess, takes_active=True)
    if config.is_deleted and config.retention_ms >= 0:

        def is_expired(segment: Segment, upper: int) -> bool:
            return now_ms - _newest_ms(log, segment) > config.retention_ms

        count = _count(log, count, high_watermark, is_expired, takes_active=True)
    try:
        if count == len(log.segments):
            count -= 1
            log.roll(now_ms)
            count += 1
        if count:
            log.durability.make_snapshot(log, log.base_offsets[count])
    except (OSError, KafkaStorageError, CorruptSegment) as error:
        # On a full disk the kept segment or snapshot may not fit; `detach` removes what can be removed without it.
        logger.warning("could not delete all old segments of %s: %s", log.topic_partition, error)
    return log.base_offsets[count]


def _count(
    log: LogState, begin: int, high_watermark: int, should_go: Callable[[Segment, int], bool], *, takes_active: bool
) -> int:
    """The number of segments to remove: the first ``begin``, and those after them for which ``should_go`` is true."""
    for index in range(begin, len(log.segments)):
        segment = log.segments[index]
        is_active = segment is log.active
        if is_active and not (takes_active and segment.size):
            return index
        upper = log.end_offset if is_active else log.base_offsets[index + 1]
        if upper > high_watermark or not should_go(segment, upper):
            return index
    return len(log.segments)


def needs_flush_before(log: LogState, offset: int) -> bool:
    """Whether a flush must precede `detach` so that all segments below ``offset`` can be removed."""
    return offset > log.base_offsets[0] and not log.durability.may_begin_at(log, offset)


def detach(log: LogState, offset: int) -> bool:
    """Remove segments that end at or before ``offset`` from the log; returns whether there were any."""
    if log.offline_reason is not None:
        return False
    count = max(0, bisect_right(log.base_offsets, offset) - 1)
    while count and not log.durability.may_begin_at(log, log.base_offsets[count]):
        count -= 1
    if not count:
        return False
    gone, kept = log.segments[:count], log.segments[count:]
    log.advance_log_start(kept[0].base_offset)
    log.set_segments(kept)
    for segment in gone:
        log.environment.index_cache.forget(segment)
        segment.handle.retire()
    log.detached += gone
    return True


def rename_detached(log: LogState) -> list[FileDeletion]:
    """Rename the files of detached segments, and of the snapshots before the log's first segment."""
    gone, log.detached = log.detached, []
    if not gone or log.offline_reason is not None:
        # A deleted log's files are removed with it, and their paths may belong to another log.
        return []
    oldest = log.base_offsets[0]
    removals = [remove_segment(log, segment) for segment in gone]
    return removals + remove_snapshots(log, lambda offset: offset >= oldest)


def _newest_ms(log: LogState, segment: Segment) -> int:
    """The largest timestamp; where batches have none, the modification time of the file."""
    newest = largest_timestamp(log, segment)
    return newest if newest >= 0 else log.environment.files.modified_ms(segment.log_path)


def remove_segment(log: LogState, segment: Segment) -> FileDeletion:
    """Rename a segment's files to ``.deleted``."""
    log.environment.index_cache.forget(segment)
    segment.handle.retire()
    return _set_aside(log, [segment.path(suffix) for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES)])


def remove_snapshots(log: LogState, keep: Callable[[int], bool]) -> list[FileDeletion]:
    """Rename producer snapshots to ``.deleted``, except those at offsets for which ``keep`` is true."""
    paths = log.durability.forget_snapshots(log, keep)
    return [_set_aside(log, paths)] if paths else []


def _set_aside(log: LogState, paths: list[str]) -> FileDeletion:
    """Rename files to ``.deleted``: when they are deleted, their names may belong to new ones."""
    files = log.environment.files
    renamed = []
    for path in paths:
        try:
            files.rename(path, path + DELETED_SUFFIX)
        except FileNotFoundError:
            continue
        renamed.append(path + DELETED_SUFFIX)
    log.durability.note_directory_changed()
    return FileDeletion(files, renamed, log.config.file_delete_delay_ms)
