"""Planning of compaction: the part of a log that can be compacted, whether that is worthwhile, and the job for it.

A log is *clean* below its first dirty offset, which is kept in the cleaner's checkpoint, and *dirty* from there to its
first uncleanable offset. Uncleanable are: the active segment, offsets at or above the last stable offset (K3), offsets
that are not durable yet, and records protected by ``min.compaction.lag.ms``. All of these bounds are rounded down to a
segment boundary. A log is worth compacting when its dirty ratio is above ``min.cleanable.dirty.ratio``, or when it has
dirty records older than ``max.compaction.lag.ms``.

`survey` and `prepare` run on the event loop, so they open no segment file. A plan whose job runs in this process
leases the source files; `CompactionPlan.release` returns the leases.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from millbeck.kernel.environment import File
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import LONG_MAX, MIB
from millbeck.storage.compaction.job import CompactionJob, LastProducerBatch, SourceRemoved, SourceSegment
from millbeck.storage.file_cache import CachedFile
from millbeck.storage.reading import aborted_transactions
from millbeck.storage.segment import CorruptSegment, Segment
from millbeck.storage.timestamps import largest_timestamp

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState

logger = logging.getLogger(__name__)

_size = attrgetter("size")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogToClean:
    """The clean, dirty and uncleanable parts of a log at one moment."""

    topic_partition: TopicPartition
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    uncleanable_bytes: int
    compaction_delay_ms: int
    """The time by which the oldest dirty records have exceeded ``max.compaction.lag.ms``; 0 when they have not."""
    dirty_ratio_min: float
    was_reset: bool
    """Whether the checkpoint was outside the log and therefore ignored."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether ``max.compaction.lag.ms`` requires a compaction, whatever the dirty ratio."""
        return self.compaction_delay_ms > 0 and self.dirty_bytes > 0

    @property
    def is_worthwhile(self) -> bool:
        return self.is_due or self.dirty_ratio > self.dirty_ratio_min


def survey(log: LogState, *, checkpoint: int | None, high_watermark: int, now_ms: int) -> LogToClean:
    """Measure a log; ``checkpoint`` is where the last compaction ended. Raises `KafkaStorageError` or OSError."""
    if log.offline_reason is not None:
        raise log.offline_error()
    try:
        return _survey(log, checkpoint, high_watermark, now_ms)
    except CorruptSegment as error:
        raise log.mark_corrupt(error) from error


def _survey(log: LogState, checkpoint: int | None, high_watermark: int, now_ms: int) -> LogToClean:
    first_dirty, was_reset = _first_dirty(log, checkpoint)
    uncleanable = _first_uncleanable(log, first_dirty, high_watermark, now_ms)
    limit = bisect_left(log.base_offsets, uncleanable)
    first = min(log.segment_index_for(first_dirty), limit)
    return LogToClean(
        topic_partition=log.topic_partition,
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=max(first_dirty, uncleanable),
        clean_bytes=_size_of(log.segments[:first]),
        dirty_bytes=_size_of(log.segments[first:limit]),
        uncleanable_bytes=_size_of(log.segments[limit:]),
        compaction_delay_ms=_compaction_delay(log, first_dirty, now_ms),
        dirty_ratio_min=log.config.min_cleanable_dirty_ratio,
        was_reset=was_reset,
    )


def _size_of(segments: list[Segment]) -> int:
    return sum(map(_size, segments))


def _first_dirty(log: LogState, checkpoint: int | None) -> tuple[int, bool]:
    start = log.log_start_offset
    if checkpoint is None:
        return start, False
    if checkpoint < start or checkpoint > log.end_offset:
        # Below the log start offset: retention has deleted that part, which is normal with
        # cleanup.policy=compact,delete.
        level = logging.DEBUG if checkpoint < start and log.config.is_deleted else logging.WARNING
        logger.log(
            level,
            "compacting %s from offset %d: the cleaner checkpoint %d is outside the log",
            log.topic_partition,
            start,
            checkpoint,
        )
        return start, True
    return checkpoint, False


def _first_uncleanable(log: LogState, first_dirty: int, high_watermark: int, now_ms: int) -> int:
    bound = min(log.active.base_offset, log.last_stable_offset(high_watermark), log.recovery_point)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in log.segments[log.segment_index_for(first_dirty) :]:
            if segment.base_offset >= bound:
                break
            if largest_timestamp(log, segment) > now_ms - lag_ms:
                bound = segment.base_offset
                break
    # Only whole segments are compacted: round down to the base offset of the segment that contains the bound.
    index = bisect_right(log.base_offsets, bound) - 1
    return log.base_offsets[index] if index >= 0 else log.base_offsets[0]


def _compaction_delay(log: LogState, first_dirty: int, now_ms: int) -> int:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms >= LONG_MAX:
        return 0
    oldest = LONG_MAX
    for segment in log.segments[log.segment_index_for(first_dirty) : -1]:
        if segment.size:
            if segment.first_timestamp is None:
                segment.first_timestamp = segment.header_at(0).max_timestamp
            if segment.first_timestamp > 0:
                oldest = min(oldest, segment.first_timestamp)
    return max(0, now_ms - max(lag_ms, 0) - oldest)


class LeasedSource:
    """A source file that is leased by its plan; the plan closes it."""

    __slots__ = ("_file",)

    def __init__(self, file: File) -> None:
        self._file = file

    def read(self, size: int, position: int) -> bytes:
        return self._file.read(size, position)

    def close(self) -> None:
        return None


class CompactionPlan:
    """A job and the leases on the sources it has opened in this process; release it exactly once, whatever its
    outcome.

    A worker process opens sources by name, so it costs this process no file descriptor, however many there are.
    """

    __slots__ = ("_handles", "_leased", "generation", "job", "log", "segments")

    def __init__(self, log: LogState, job: CompactionJob, segments: list[Segment]) -> None:
        self.log = log
        self.job = job
        self.segments = segments
        """The segments of the job's sources, in the same order."""
        self.generation = log.durability.generation
        """The log's truncation count: after a truncation the same segments hold other batches."""
        self._handles = {segment.handle.path: segment.handle for segment in segments}
        """Kept here because truncation gives a segment a new handle."""
        self._leased: list[CachedFile] = []

    def open_source(self, source: SourceSegment) -> LeasedSource:
        """Open a source for a job in this process: an open file stays readable after retention has unlinked it.

        Raises `SourceRemoved` or OSError.
        """
        handle = self._handles[source.path]
        try:
            file = handle.lease()
        except FileNotFoundError as error:
            raise SourceRemoved(f"{source.path} no longer exists") from error
        self._leased.append(handle)
        return LeasedSource(file)

    def release(self) -> None:
        leased, self._leased = self._leased, []
        for handle in leased:
            handle.release()


def prepare(
    log: LogState, surveyed: LogToClean, *, now_ms: int, map_bytes_max: int, read_bytes: int = 1 * MIB
) -> CompactionPlan | None:
    """The plan of one round over the ``surveyed`` log; None when nothing is cleanable.

    Raises OSError or `KafkaStorageError` when the log's index and snapshot files cannot be read.
    """
    upper = surveyed.first_uncleanable_offset
    segments = [segment for segment in log.segments if segment.base_offset < upper]
    if not surveyed.dirty_bytes or not segments:
        return None
    config = log.config
    producers = {
        entry.producer_id: LastProducerBatch(entry.epoch, entry.last_offset)
        for entry in log.producer_state.producers.values()
    }
    job = CompactionJob(
        topic_partition=log.topic_partition,
        directory=log.directory,
        sources=tuple(_source(log, index) for index in range(len(segments))),
        first_dirty_offset=surveyed.first_dirty_offset,
        upper_offset=upper,
        aborted=tuple(aborted_transactions(log, segments[0].base_offset, upper)),
        producers=producers,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_size_max=config.segment_size_bytes,
        index_size_max=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        map_bytes_max=map_bytes_max,
        read_bytes=read_bytes,
    )
    return CompactionPlan(log, job, segments)


def _source(log: LogState, index: int) -> SourceSegment:
    segment = log.segments[index]
    return SourceSegment(segment.base_offset, log.base_offsets[index + 1], segment.log_path, segment.size)
