"""Removing old segments whole, and the files they leave behind.

A segment goes when the log start has passed it, when the log is larger than ``retention.bytes`` without it, or when its
newest record is older than ``retention.ms``. Only from the front, never one that reaches to the high watermark. Its
files are renamed to ``.deleted`` at once and unlinked by a `Removal` job after ``file.delete.delay.ms``; who leases the
file goes on reading it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.environment import Files
from millbeck.kernel.errors import KafkaStorageError
from millbeck.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX, Segment
from millbeck.storage.timestamps import largest_timestamp

if TYPE_CHECKING:
    from millbeck.storage.log import Log

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

    removals = _delete(log, now_ms, high_watermark, is_below_start, may_empty=False)
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

        removals += _delete(log, now_ms, high_watermark, is_excess, may_empty=True)
    if config.retention_ms >= 0:

        def is_expired(segment: Segment, upper: int) -> bool:
            return now_ms - _newest_ms(log, segment) > config.retention_ms

        removals += _delete(log, now_ms, high_watermark, is_expired, may_empty=True)
    return removals


def _newest_ms(log: Log, segment: Segment) -> int:
    """The largest timestamp; where batches carry none, when the file was last changed."""
    newest = largest_timestamp(log, segment)
    return newest if newest >= 0 else log.environment.files.modified_ms(segment.log_path)


def _delete(
    log: Log, now_ms: int, high_watermark: int, should_go: Callable[[Segment, int], bool], *, may_empty: bool
) -> list[Removal]:
    """Remove segments from the front as long as ``should_go`` says so of them and the offset after them."""
    count = 0
    segments = log.segments
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        upper = log.end_offset if is_last else segments[index + 1].base_offset
        if is_last and (not segment.size or not may_empty):
            break
        if upper > high_watermark or not should_go(segment, upper):
            break
        count = index + 1
    if count and count == len(segments):
        # There is always an active segment, so an empty one takes the place of the last. A full disk may refuse it;
        # the segments before the last can go all the same, and make room.
        try:
            log.roll(now_ms)
        except KafkaStorageError:
            count -= 1
    if not count:
        return []
    gone, kept = log.segments[:count], log.segments[count:]
    log.advance_log_start(kept[0].base_offset)
    log.set_segments(kept)
    removals = [remove_segment(log, segment) for segment in gone]
    oldest = kept[0].base_offset
    removals += remove_snapshots(log, lambda offset: offset >= oldest)
    return removals


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
    log.directory_changed()
    return Removal(files, renamed, log.config.file_delete_delay_ms)


def remove_snapshots(log: Log, keep: Callable[[int], bool]) -> list[Removal]:
    paths = [log.snapshot_path(offset) for offset in log.forget_snapshots(keep)]
    return [Removal(log.environment.files, paths, log.config.file_delete_delay_ms)] if paths else []
