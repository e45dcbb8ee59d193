"""Removing old segments whole, and the files they leave behind.

A segment goes when the log start has passed it, when the log is larger than ``retention.bytes`` without it, or when its
newest record is older than ``retention.ms``. Only from the front, and never one that reaches to the high watermark.
When all go, an empty segment takes their place.

Theory of operation. It takes steps, since between them something must become durable, which is not for the loop:

1. `target` decides below which offset segments go. The producers they have seen live on in the snapshot there, which
   a flush makes durable, and the recovery point passes them (`must_flush`; usually a roll has asked for it already).
2. `detach` takes them out of the log: no reader finds them any more. It takes only what is durable, so that on a full
   disk, where a flush may have no room, at least that goes.
3. The directory's checkpoints learn of the new start (`LogHome.raising_job`): names that come back after a crash would
   look like a log with a hole if recovery began before them.
4. `remove_detached` renames the files to ``.deleted``; a `Removal` job unlinks them after ``file.delete.delay.ms``. Who
   leases one goes on reading it.

`Log.apply_retention` takes all of them at once, in place.
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


def target(log: Log, now_ms: int, high_watermark: int) -> int:
    """Below which offset segments should go: the base of the first to stay, which may have to be made (a roll)."""

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
            log.durability.make_snapshot(log.base_offsets[count])
    except (OSError, KafkaStorageError, CorruptSegment) as error:
        # On a full disk there may be no room for what is to stay; `detach` takes what can go without it.
        logger.warning("%s keeps segments that should go: %s", log.topic_partition, error)
    return log.base_offsets[count]


def _count(
    log: Log, begin: int, high_watermark: int, should_go: Callable[[Segment, int], bool], *, takes_active: bool
) -> int:
    """How many segments go when the first ``begin`` do, and those after them of which ``should_go`` says so."""
    for index in range(begin, len(log.segments)):
        segment = log.segments[index]
        is_active = segment is log.active
        if is_active and not (takes_active and segment.size):
            return index
        upper = log.end_offset if is_active else log.base_offsets[index + 1]
        if upper > high_watermark or not should_go(segment, upper):
            return index
    return len(log.segments)


def must_flush(log: Log, offset: int) -> bool:
    """Whether a flush has to come before `detach` if all below ``offset`` is to go."""
    return offset > log.base_offsets[0] and not log.durability.may_begin_at(offset)


def detach(log: Log, offset: int) -> bool:
    """Take segments that end at or before ``offset`` out of the log; whether there were any."""
    if log.offline_reason is not None:
        return False
    count = max(0, bisect_right(log.base_offsets, offset) - 1)
    while count and not log.durability.may_begin_at(log.base_offsets[count]):
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


def remove_detached(log: Log) -> list[Removal]:
    """Take the files of detached segments, and the snapshots before the log's first segment, out of sight."""
    gone, log.detached = log.detached, []
    if not gone or log.offline_reason is not None:
        # A deleted log's files are gone with it, and their names may be another log's.
        return []
    oldest = log.base_offsets[0]
    removals = [remove_segment(log, segment) for segment in gone]
    return removals + remove_snapshots(log, lambda offset: offset >= oldest)


def _newest_ms(log: Log, segment: Segment) -> int:
    """The largest timestamp; where batches carry none, when the file was last changed."""
    newest = largest_timestamp(log, segment)
    return newest if newest >= 0 else log.environment.files.modified_ms(segment.log_path)


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
