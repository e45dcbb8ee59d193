"""Repair of a stopped node's damaged log by truncation: find the damage, report the records that a truncation loses,
truncate.

Only damage below the recovery point needs repair: a node that finds it takes the log offline and leaves its files
unchanged. Data above the recovery point may be torn by a crash, and the next start truncates it by itself.

Nothing is deleted. The bytes from the damage to the end of its segment are copied to ``<offset>.log.cut``, and later
segments are renamed with that suffix too; a start ignores such files, `millbeck dump-log` reads them. The
clean-shutdown marker is removed first: the next start then registers as after a crash, so that the controller elects
this replica only where no other one has the truncated records. The steps are ordered so that an interrupted repair can
be run again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from millbeck.kernel.environment import Files, OpenMode
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import LONG_MAX
from millbeck.storage import checkpoints, interrupted, partition_directory
from millbeck.storage.atomic_file import parent_of
from millbeck.storage.config import LogConfig
from millbeck.storage.damage_removal import cut_and_close, detached_environment
from millbeck.storage.directory import CLEAN_SHUTDOWN_FILE_NAME
from millbeck.storage.epoch_cache import LeaderEpochCache
from millbeck.storage.recovery import Recovery, first_to_read
from millbeck.storage.segment import LOG_SUFFIX, CorruptSegment, Segment, file_name

CUT_SUFFIX: Final = ".cut"
_COPY_BYTES: Final = 1024 * 1024
# The topic's own settings are unknown here; cleanup.policy=compact allows the gaps that compaction leaves.
_CONFIG: Final = LogConfig.of(cleanup_policy="compact")


class RepairFailed(Exception):
    """The log cannot be repaired this way; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Position of the damage in a log, and the data that is removed when the log is truncated there."""

    path: str
    position: int
    reason: str
    start_offset: int
    """The log start offset; after the truncation the log reaches from here to ``first_offset``."""
    first_offset: int
    """The first offset that is removed."""
    end_offset: int
    """The former log end offset, as far as it can be read."""
    record_count: int
    is_exact: bool
    """Whether all removed batches could be counted; otherwise there were more records."""
    later: tuple[str, ...]
    """Paths of the later segments, which are removed whole."""
    size_bytes: int
    segment_offset: int
    """Base offset of the damaged segment."""

    @property
    def kept_in(self) -> tuple[str, ...]:
        """The files that keep the removed bytes."""
        tail = f"{parent_of(self.path)}/{file_name(self.first_offset, LOG_SUFFIX)}{CUT_SUFFIX}"
        return (tail, *(path + CUT_SUFFIX for path in self.later))


def find_damage(files: Files, log_directory: str, topic_partition: TopicPartition) -> Damage | None:
    """Read a whole log and verify each batch; None when all durable data is intact. Changes nothing.

    Raises OSError or `CheckpointError`.
    """
    directory = f"{log_directory}/{partition_directory.directory_name(topic_partition)}"
    recovery_point = checkpoints.read_offsets(files, log_directory, checkpoints.RECOVERY_POINTS).get(topic_partition, 0)
    start_offset = checkpoints.read_offsets(files, log_directory, checkpoints.LOG_START_OFFSETS).get(topic_partition, 0)
    segments = _segments_of(files, directory)
    if not segments:
        return None
    start_offset = max(start_offset, segments[0].base_offset)
    try:
        recovery = Recovery(
            segments,
            recovery_point=LONG_MAX,
            is_compacted=True,
            epochs=LeaderEpochCache(),
            snapshot_offsets=[],
            read_snapshot=lambda offset: None,
            # Data below the log start offset is not read by anybody and about to be deleted.
            first_index=first_to_read(segments, start_offset),
        )
        recovery.run()
        problem = recovery.problem
        if problem is None and recovery.dropped:
            reason = f"its offsets do not continue the log, which ends at {recovery.end_offset}"
            problem = CorruptSegment(recovery.dropped[0].log_path, 0, reason)
        if problem is None or recovery.end_offset >= recovery_point:
            return None
        return _damage_of(segments, problem, start_offset, recovery.end_offset, recovery_point)
    finally:
        for segment in segments:
            segment.handle.retire()


def cut(files: Files, log_directory: str, topic_partition: TopicPartition, damage: Damage, *, now_ms: int) -> int:
    """Truncate the log at its damage, keep the removed bytes, rebuild the indexes; returns the new log end offset.

    The directory's lock must be held. Raises `RepairFailed`, `KafkaStorageError`, `CheckpointError` or OSError.
    """
    directory = f"{log_directory}/{partition_directory.directory_name(topic_partition)}"
    for path in damage.kept_in:
        if files.exists(path):
            raise RepairFailed(f"{path} exists already, from an earlier repair: move it away first")
    marker = f"{log_directory}/{CLEAN_SHUTDOWN_FILE_NAME}"
    if files.exists(marker):
        files.unlink(marker)
        files.sync_directory(log_directory)
    tail, *later = damage.kept_in
    _copy_from(files, damage.path, damage.position, tail)
    # Last segment first: after an interruption the remaining segments are still a valid log.
    for path, kept in reversed(list(zip(damage.later, later, strict=True))):
        files.rename(path, kept)
    files.sync_directory(directory)
    # From here on recovery at a start would take the damage for a torn tail and truncate it; all bytes are kept by
    # now. And no checkpoint may be above the new log end offset.
    recovery_points = checkpoints.read_offsets(files, log_directory, checkpoints.RECOVERY_POINTS)
    recovery_points[topic_partition] = damage.segment_offset
    checkpoints.write_offsets(files, log_directory, checkpoints.RECOVERY_POINTS, recovery_points)
    _truncate(files, damage.path, damage.position)
    repaired = cut_and_close(
        files,
        directory,
        topic_partition,
        partition_directory.read_metadata(files, directory),
        _CONFIG,
        now_ms=now_ms,
        recovery_point=damage.segment_offset,
        log_start_offset=damage.start_offset,
    )
    if repaired.damaged_offset >= 0:
        raise RepairFailed(f"{topic_partition} has further, earlier damage: run the repair again")
    return repaired.end_offset


def _segments_of(files: Files, directory: str) -> list[Segment]:
    environment = detached_environment(files)
    segments = []
    for name in files.names(directory):
        offset = interrupted.offset_of(name)
        if offset >= 0 and name == file_name(offset, LOG_SUFFIX):
            segment = Segment(files, environment.cache, environment.index_cache, directory, offset, _CONFIG)
            segment.size = files.size(segment.log_path)
            segment.set_no_txn_index()
            segments.append(segment)
    return segments


def _damage_of(
    segments: list[Segment], problem: CorruptSegment, start_offset: int, first_offset: int, recovery_point: int
) -> Damage:
    [index] = [index for index, segment in enumerate(segments) if segment.log_path == problem.path]
    going, later = segments[index], segments[index + 1 :]
    end_offset, record_count, is_exact = max(recovery_point, first_offset), 0, True
    for segment, position in [(going, problem.position), *((segment, 0) for segment in later)]:
        try:
            for _, header in segment.headers(position):
                # The fields of a damaged header may have any value.
                record_count += min(max(header.record_count, 0), header.last_offset_delta + 1)
                end_offset = max(end_offset, min(header.next_offset, segment.base_offset + (1 << 31)))
        except CorruptSegment:
            is_exact = False
    return Damage(
        path=problem.path,
        position=problem.position,
        reason=problem.reason,
        start_offset=start_offset,
        first_offset=first_offset,
        end_offset=end_offset,
        record_count=record_count,
        is_exact=is_exact,
        later=tuple(segment.log_path for segment in later),
        size_bytes=going.size - problem.position + sum(segment.size for segment in later),
        segment_offset=going.base_offset,
    )


def _copy_from(files: Files, path: str, position: int, target: str) -> None:
    """Copy a file from a position on to another file, durably."""
    source = files.open(path, OpenMode.READ)
    try:
        kept = files.open(target, OpenMode.WRITE)
        try:
            written, size = 0, source.size() - position
            while written < size:
                chunk = source.read(min(_COPY_BYTES, size - written), position + written)
                kept.write([chunk], written)
                written += len(chunk)
            kept.sync()
        finally:
            kept.close()
    finally:
        source.close()


def _truncate(files: Files, path: str, size: int) -> None:
    file = files.open(path, OpenMode.WRITE)
    try:
        file.truncate(size)
        file.sync()
    finally:
        file.close()
