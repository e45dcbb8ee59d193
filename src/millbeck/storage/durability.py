"""The parts of one log that are not durable yet, and the flush that makes them durable.

Besides the batches these are: indexes of sealed segments, producer snapshots taken at rolls, leader epochs, files
created or removed in the directory and, for a new log, its directory and ``partition.metadata``. A flush makes all of
them durable up to the present log end. Changes during a flush are detected by version numbers and left to the next
flush. A flush of a log that was truncated meanwhile (its *generation* has changed) is ignored.

A *cut* is the removal of the end of a file, by truncation or after a failed write. The removed bytes must not come
back after a crash in the middle of newer batches, so the log accepts no writes until a flush has synced the cut.
"""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from millbeck.storage import producer_snapshot, rebuild
from millbeck.storage.atomic_file import parent_of, read_file
from millbeck.storage.epoch_cache import FILE_NAME as EPOCH_FILE_NAME
from millbeck.storage.flush import FlushJob, FlushOutcome, FlushResult, SmallFile
from millbeck.storage.segment import file_name

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState

logger = logging.getLogger(__name__)


class FlushState:
    """Flush state of one log, which passes itself in every call.

    It holds no reference to the log: that would be a reference cycle, and the logs of deleted topics would stay in
    memory until the garbage collector runs, or forever if it is disabled.
    """

    __slots__ = (
        "_cut_version",
        "_directory_version",
        "_generation",
        "_is_new",
        "_is_running",
        "_saved_epoch_version",
        "_small_files",
        "_synced_directory_version",
        "_unflushed_since_ms",
        "_unsaved_snapshots",
        "has_unsaved_sealed",
        "snapshot_offsets",
    )

    def __init__(self, log: LogState, snapshot_offsets: list[int]) -> None:
        self.snapshot_offsets = snapshot_offsets
        """Offsets of all producer snapshots, saved or not, ascending."""
        self.has_unsaved_sealed = False
        self._unsaved_snapshots: dict[int, bytes] = {}
        self._small_files: list[SmallFile] = []
        self._is_new = False
        self._is_running = False
        self._cut_version = 0
        self._generation = 0
        self._directory_version = 0
        self._synced_directory_version = 0
        self._saved_epoch_version = log.epochs.version
        self._unflushed_since_ms: int | None = None
        self.look_for_unsaved(log)

    # Changes to be flushed.

    def note_written(self, now_ms: int) -> None:
        if self._unflushed_since_ms is None:
            self._unflushed_since_ms = now_ms

    def note_directory_changed(self) -> None:
        self._directory_version += 1

    def truncated_file(self, log: LogState) -> None:
        """Require a sync before the next write, because the active file was cut, or files that were not durable yet
        were removed."""
        self._cut_version += 1
        self._directory_version += 1
        log.must_settle = True
        log.environment.home.wants_flush(log)

    def note_truncated(self, log: LogState) -> None:
        self._generation += 1
        self._directory_version += 1
        self.look_for_unsaved(log)

    def note_new(self, partition_metadata: SmallFile) -> None:
        self._is_new = True
        self._small_files.append(partition_metadata)
        self._directory_version += 1

    def note_recovered(self, snapshots: dict[int, bytes]) -> None:
        """Record that recovery has rebuilt these snapshots and the leader epochs, and may have removed files."""
        self._unsaved_snapshots.update(snapshots)
        self._saved_epoch_version = -1
        self._directory_version += 1

    def look_for_unsaved(self, log: LogState) -> None:
        self.has_unsaved_sealed = any(segment.has_unsaved_indexes for segment in log.segments[:-1])

    # Producer snapshots.

    def take_snapshot(self, log: LogState) -> None:
        """Take a snapshot of the producer state at the end offset, to be saved by the next flush."""
        offset = log.end_offset
        if not self.snapshot_offsets or self.snapshot_offsets[-1] < offset:
            insort(self.snapshot_offsets, offset)
            self._unsaved_snapshots[offset] = producer_snapshot.encode(log.producer_state.producers.values())

    def snapshot_path(self, log: LogState, offset: int) -> str:
        return f"{log.directory}/{file_name(offset, producer_snapshot.SUFFIX)}"

    def read_snapshot(self, log: LogState, offset: int) -> bytes | None:
        content = self._unsaved_snapshots.get(offset)
        if content is not None:
            return content
        files = log.environment.files
        return read_file(files, self.snapshot_path(log, offset), producer_snapshot.SIZE_BYTES_MAX)

    def forget_snapshots(self, log: LogState, keep: Callable[[int], bool]) -> list[str]:
        """Forget snapshots; returns the paths of their files, some of which may not exist."""
        gone = [offset for offset in self.snapshot_offsets if not keep(offset)]
        self.snapshot_offsets = [offset for offset in self.snapshot_offsets if keep(offset)]
        for offset in gone:
            # A running flush may have created the file of an unsaved one already.
            self._unsaved_snapshots.pop(offset, None)
        return [self.snapshot_path(log, offset) for offset in gone]

    def make_snapshot(self, log: LogState, offset: int) -> None:
        """Ensure a producer snapshot at a segment's base offset, saved by the next flush. Raises `CorruptSegment`."""
        if offset not in self.snapshot_offsets:
            state = rebuild.load_producers(
                log.segments, self.snapshot_offsets, partial(self.read_snapshot, log), offset, offset
            )
            self._unsaved_snapshots[offset] = producer_snapshot.encode(state.producers.values())
            insort(self.snapshot_offsets, offset)

    def may_begin_at(self, log: LogState, offset: int) -> bool:
        """Whether everything that recovery needs is durable when the log starts at ``offset``, the base offset of a
        segment.

        The state of producers seen in earlier segments is kept in the snapshot at that offset.
        """
        return (
            offset <= log.recovery_point and offset in self.snapshot_offsets and offset not in self._unsaved_snapshots
        )

    # Flushing.

    def is_due(self, log: LogState, now_ms: int) -> bool:
        if self._is_running or log.offline_reason is not None:
            return False
        if self.has_unsaved_sealed or log.must_settle:
            return True
        unflushed = log.end_offset - log.flushed_offset
        if not unflushed:
            return False
        config = log.config
        since = self._unflushed_since_ms
        return unflushed >= config.flush_messages or (since is not None and now_ms - since >= config.flush_ms)

    def job(self, log: LogState) -> FlushJob | None:
        if self._is_running or log.offline_reason is not None:
            return None
        if log.must_settle:
            return self._cut_job(log)
        job = FlushJob(log.environment.files, log.end_offset, self._generation)
        job.epoch_version, job.directory_version = log.epochs.version, self._directory_version
        try:
            self._add_segments(log, job)
            for small in self._small_files_due(log, job):
                job.add_small_file(small)
        except OSError as error:
            job.abandon()
            logger.warning("flush of %s is deferred: %s", log.topic_partition, error)
            return None
        if self._directory_version != self._synced_directory_version or job.small_files:
            job.directories.append(log.directory)
        if self._is_new:
            job.directories.append(parent_of(log.directory))
        if not (job.syncs or job.small_files or job.directories):
            return None
        self._is_running = True
        return job

    def _cut_job(self, log: LogState) -> FlushJob | None:
        job = FlushJob(log.environment.files, log.flushed_offset, self._generation)
        job.cut_version = self._cut_version
        handle = log.active.handle
        try:
            file = handle.lease()
        except OSError as error:
            logger.warning("flush of %s is deferred: %s", log.topic_partition, error)
            return None
        # A flush that ran during the truncation may have set the file to the size that it had as a sealed segment.
        job.trims.append((file, log.active.size))
        job.syncs.append(file)
        job.releases.append(handle.release)
        job.directories.append(log.directory)
        self._is_running = True
        return job

    def _small_files_due(self, log: LogState, job: FlushJob) -> Iterator[SmallFile]:
        for segment in log.segments[:-1]:
            if segment.base_offset in job.saved_segments:
                for path, content in segment.index_files():
                    yield SmallFile(path, content)
        for offset, content in self._unsaved_snapshots.items():
            job.snapshot_offsets.append(offset)
            yield SmallFile(self.snapshot_path(log, offset), content)
        if log.epochs.version != self._saved_epoch_version:
            yield SmallFile(f"{log.directory}/{EPOCH_FILE_NAME}", log.epochs.encode())
        yield from self._small_files

    def _add_segments(self, log: LogState, job: FlushJob) -> None:
        for index in range(log.segment_index_for(log.recovery_point), len(log.segments)):
            segment = log.segments[index]
            is_sealed = segment is not log.active
            if is_sealed and segment.has_unsaved_indexes:
                job.saved_segments.append(segment.base_offset)
            upper = log.base_offsets[index + 1] if is_sealed else log.end_offset
            if upper <= log.flushed_offset and not (is_sealed and segment.is_preallocated):
                continue
            file = segment.handle.lease()
            job.releases.append(segment.handle.release)
            if is_sealed and segment.is_preallocated:
                job.trims.append((file, segment.size))
            job.syncs.append(file)

    def finish(self, log: LogState, job: FlushJob, result: FlushResult) -> None:
        self._is_running = False
        for release in job.releases:
            release()
        if log.offline_reason is not None:
            # Deleted or failed meanwhile: missing files do not matter any more.
            return
        if result.outcome is FlushOutcome.FAILED:
            log.directory_failed(f"sync of {log.topic_partition} failed and is not retried: {result.error}")
            return
        if result.outcome is FlushOutcome.DEFERRED:
            logger.warning("flush of %s is deferred: %s", log.topic_partition, result.error)
            return
        if job.cut_version is not None:
            log.must_settle = job.cut_version != self._cut_version
            return
        if job.generation != self._generation:
            return
        for segment in log.segments[:-1]:
            if segment.base_offset in job.saved_segments:
                segment.is_preallocated = False
                segment.indexes_saved()
        self.look_for_unsaved(log)
        for offset in job.snapshot_offsets:
            self._unsaved_snapshots.pop(offset, None)
        self._saved_epoch_version = job.epoch_version
        self._synced_directory_version = job.directory_version
        self._is_new = False
        self._small_files.clear()
        log.flushed_offset = max(log.flushed_offset, job.target_offset)
        self._unflushed_since_ms = None if log.flushed_offset == log.end_offset else log.now_ms

    def save_active_indexes(self, log: LogState) -> None:
        """Save the active segment's indexes like those of a sealed one, because the log is closing."""
        active = log.active
        active.seal()
        if active.has_unsaved_indexes:
            self._small_files.extend(SmallFile(path, content) for path, content in active.index_files())

    @property
    def generation(self) -> int:
        """The number of truncations since the log was opened."""
        return self._generation

    @property
    def is_running(self) -> bool:
        """Whether a flush is running."""
        return self._is_running

    def is_complete(self, log: LogState) -> bool:
        is_flushed = log.flushed_offset == log.end_offset and not self._unsaved_snapshots
        return is_flushed and not self._small_files and not self._is_running
