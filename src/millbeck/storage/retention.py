"""Removing old segments whole, and the files they leave behind.

A segment goes when the log start has passed it, when the log is larger than ``retention.bytes`` without it, or when its
newest record is older than ``retention.ms``. Only from the front, and never one that reaches to the high watermark.
When all go, an empty segment takes their place.

The producers a segment has seen live on in the snapshot after it, so that snapshot is durable before the segment goes;
it usually is, since a roll asks for a flush. Its files are renamed to ``.deleted`` at once and unlinked by a `Removal`
job after ``file.delete.delay.ms``; who leases the file goes on reading it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.environment import Files
from millbeck.kernel.errors import KafkaStorageError
from millbeck.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX, CorruptSegment, Segment
from millbeck.storage.timestamps import largest_timestamp

if TYPE_CHECKING:
    from millbeck.storage.log import Log

logger = logging.getLogger(__name__)

DELETED_SUFFIX = ".deleted"


class Removal:
    """Files that are no longer part of a log; `run` deletes them, off the loop, once ``delay_ms`` has passed."""

    __slots__ = ("_files", "delay_ms", "paths")

    def __init__(self, files: Files, paths: list[str], delay_ms: int) -> None:
        self._files = files
        self.paths = paths
        self.delay_ms = delay_ms

    def run(self) -> None:
        """A file that is gone already (its topic was deleted meanwhile) is no error."""
        for path in self.paths:
            try:
                self._files.unlink(path)
            except FileNotFoundError:
                pass


def apply(log: Log, now_ms: int, high_watermark: int) -> list[Removal]:
    """See `Log.apply_retention`."""

    def is_below_start(segment: Segment, upper: int) -> bool:
        return upper <= log.log_start_offset

    removals = _delete(log, now_ms, high_watermark, is_below_start, takes_active=False)
    config = log.config
    if not config.is_deleted:
        return removals
    if config.retention_bytes >= 0:
        excess = log.size_bytes - config.retention_bytes

        def is_excess(segment: Segment, upper: int) -> bool:
            nonlocal excess
            if excess < segment.size:
                return False
            excess -= segment.size
            return True

        removals += _delete(log, now_ms, high_watermark, is_excess, takes_active=True)
    if config.retention_ms >= 0:

        def is_expired(segment: Segment, upper: int) -> bool:
            return now_ms - _newest_ms(log, segment) > config.retention_ms

        removals += _delete(log, now_ms, high_watermark, is_expired, takes_active=True)
    return removals


def _newest_ms(log: Log, segment: Segment) -> int:
    """The largest timestamp; where batches carry none, when the file was last changed."""
    newest = largest_timestamp(log, segment)
    return newest if newest >= 0 else log.environment.files.modified_ms(segment.log_path)


def _delete(
    log: Log, now_ms: int, high_watermark: int, should_go: Callable[[Segment, int], bool], *, takes_active: bool
) -> list[Removal]:
    """Remove segments from the front as long as ``should_go`` says so of them and the offset after them."""
    count = 0
    for index, segment in enumerate(log.segments):
        is_active = segment is log.active
        if is_active and not (takes_active and segment.size):
            break
        upper = log.end_offset if is_active else log.base_offsets[index + 1]
        if upper > high_watermark or not should_go(segment, upper):
            break
        count = index + 1
    count = _make_ready(log, now_ms, count)
    if not count:
        return []
    gone, kept = log.segments[:count], log.segments[count:]
    oldest = kept[0].base_offset
    log.advance_log_start(oldest)
    log.set_segments(kept)
    # Names that come back after a crash would look like a log with a hole if recovery began before them.
    log.environment.home.raise_checkpoints(log)
    removals = [remove_segment(log, segment) for segment in gone]
    return removals + remove_snapshots(log, lambda offset: offset >= oldest)


def _make_ready(log: Log, now_ms: int, count: int) -> int:
    """Prepare for the removal of ``count`` segments; returns how many can go.

    On a full disk there may be no room for the segment or the snapshot that is to stay; then only what was flushed
    goes, and makes room.
    """
    if not count:
        return 0
    try:
        if count == len(log.segments):
            log.roll(now_ms)
        oldest = log.base_offsets[count]
        if oldest > log.recovery_point or oldest not in log.durability.snapshot_offsets:
            log.durability.secure_start(oldest)
    except (OSError, KafkaStorageError, CorruptSegment) as error:
        logger.warning("%s keeps segments that should go: %s", log.topic_partition, error)
        return min(count, log.segment_index_for(log.recovery_point))
    return count


def remove_segment(log: Log, segment: Segment) -> Removal:
    """Take a segment's files out of the log's sight."""
    files = log.environment.files
    log.environment.index_cache.forget(segment)
    segment.handle.retire()
    renamed = []
    for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
        path = segment.path(suffix)
        try:
            files.rename(path, path + DELETED_SUFFIX)
        except FileNotFoundError:
            continue
        renamed.append(path + DELETED_SUFFIX)
    log.durability.note_directory_changed()
    return Removal(files, renamed, log.config.file_delete_delay_ms)


def remove_snapshots(log: Log, keep: Callable[[int], bool]) -> list[Removal]:
    paths = log.durability.forget_snapshots(keep)
    return [Removal(log.environment.files, paths, log.config.file_delete_delay_ms)] if paths else []
