"""What of one log is not on disk yet, and the flush that puts it there.

Beside the batches themselves these are: the indexes of sealed segments, producer snapshots taken at rolls, the leader
epochs, names created or removed in the directory, and, for a new log, its own name and ``partition.metadata``. A flush
makes all of it durable up to the log's present end; changes that come while it runs are counted by versions, so that
they wait for the next one. A log that was truncated meanwhile (its *generation* has changed) takes nothing from it.

A *cut* is an end that was cut off a file, by truncation or after a failed write. What was cut off must not come back
after a crash, in the middle of newer batches: until a flush has synced the cut, the log takes no writes.
"""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from millbeck.storage import producer_snapshot, rebuild
from millbeck.storage.atomic_file import parent_of, read_file
from millbeck.storage.epoch_cache import FILE_NAME as EPOCH_FILE_NAME
from millbeck.storage.flush import FlushJob, FlushOutcome, FlushResult, SmallFile
from millbeck.storage.segment import file_name

if TYPE_CHECKING:
    from millbeck.storage.log import Log

logger = logging.getLogger(__name__)


class Durability:
    __slots__ = (
        "_cut_version",
        "_directory_version",
        "_generation",
        "_is_new",
        "_is_running",
        "_log",
        "_saved_epoch_version",
        "_small_files",
        "_synced_directory_version",
        "_unflushed_since_ms",
        "_unsaved_snapshots",
        "has_unsaved_sealed",
        "snapshot_offsets",
    )

    def __init__(self, log: Log, snapshot_offsets: list[int]) -> None:
        self._log = log
        self.snapshot_offsets = snapshot_offsets
        """Where there are producer snapshots, saved or not; they rise."""
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
        self.look_for_unsaved()

    # What changes.

    def note_written(self, now_ms: int) -> None:
        if self._unflushed_since_ms is None:
            self._unflushed_since_ms = now_ms

    def note_directory_changed(self) -> None:
        self._directory_version += 1

    def note_cut(self) -> None:
        """The active file was cut, or names that were not durable yet are gone again: to be synced before any write."""
        self._cut_version += 1
        self._directory_version += 1
        self._log.must_settle = True
        self._log.environment.home.wants_flush(self._log)

    def note_truncated(self) -> None:
        self._generation += 1
        self._directory_version += 1
        self.look_for_unsaved()

    def note_new(self, partition_metadata: SmallFile) -> None:
        self._is_new = True
        self._small_files.append(partition_metadata)
        self._directory_version += 1

    def note_recovered(self, snapshots: dict[int, bytes]) -> None:
        """Recovery has made these snapshots and the epochs anew, and may have removed names."""
        self._unsaved_snapshots.update(snapshots)
        self._saved_epoch_version = -1
        self._directory_version += 1

    def look_for_unsaved(self) -> None:
        self.has_unsaved_sealed = any(segment.has_unsaved_indexes for segment in self._log.segments[:-1])

    # Producer snapshots.

    def take_snapshot(self) -> None:
        """Keep the producers as of the end offset, to be saved by the next flush."""
        offset = self._log.end_offset
        if not self.snapshot_offsets or self.snapshot_offsets[-1] < offset:
            insort(self.snapshot_offsets, offset)
            self._unsaved_snapshots[offset] = producer_snapshot.encode(self._log.producer_state.producers.values())

    def snapshot_path(self, offset: int) -> str:
        return f"{self._log.directory}/{file_name(offset, producer_snapshot.SUFFIX)}"

    def read_snapshot(self, offset: int) -> bytes | None:
        content = self._unsaved_snapshots.get(offset)
        if content is not None:
            return content
        files = self._log.environment.files
        return read_file(files, self.snapshot_path(offset), producer_snapshot.SIZE_BYTES_MAX)

    def forget_snapshots(self, keep: Callable[[int], bool]) -> list[str]:
        """Drop snapshots; returns the paths of those that may have a file."""
        gone = [offset for offset in self.snapshot_offsets if not keep(offset)]
        self.snapshot_offsets = [offset for offset in self.snapshot_offsets if keep(offset)]
        return [self.snapshot_path(offset) for offset in gone if self._unsaved_snapshots.pop(offset, None) is None]

    def make_snapshot(self, offset: int) -> None:
        """See to it that there is a snapshot at a segment's base, saved by the next flush. Raises `CorruptSegment`."""
        if offset not in self.snapshot_offsets:
            log = self._log
            state = rebuild.load_producers(log.segments, self.snapshot_offsets, self.read_snapshot, offset, offset)
            self._unsaved_snapshots[offset] = producer_snapshot.encode(state.producers.values())
            insort(self.snapshot_offsets, offset)

    def may_begin_at(self, offset: int) -> bool:
        """Whether all is durable that a start after a crash needs when the log begins at ``offset``, a segment's base.

        The producers that earlier segments have seen live on in the snapshot there.
        """
        return (
            offset <= self._log.recovery_point
            and offset in self.snapshot_offsets
            and offset not in self._unsaved_snapshots
        )

    # Flushing.

    def is_due(self, now_ms: int) -> bool:
        log = self._log
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

    def job(self) -> FlushJob | None:
        log = self._log
        if self._is_running or log.offline_reason is not None:
            return None
        if log.must_settle:
            return self._cut_job()
        job = FlushJob(log.environment.files, log.end_offset, self._generation)
        job.epoch_version, job.directory_version = log.epochs.version, self._directory_version
        try:
            self._add_segments(job)
            for small in self._small_files_due(job):
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

    def _cut_job(self) -> FlushJob | None:
        log = self._log
        job = FlushJob(log.environment.files, log.flushed_offset, self._generation)
        job.cut_version = self._cut_version
        handle = log.active.handle
        try:
            job.syncs.append(handle.lease())
        except OSError as error:
            logger.warning("flush of %s is deferred: %s", log.topic_partition, error)
            return None
        job.releases.append(handle.release)
        job.directories.append(log.directory)
        self._is_running = True
        return job

    def _small_files_due(self, job: FlushJob) -> Iterator[SmallFile]:
        log = self._log
        for segment in log.segments[:-1]:
            if segment.base_offset in job.saved_segments:
                for path, content in segment.index_files():
                    yield SmallFile(path, content)
        for offset, content in self._unsaved_snapshots.items():
            job.snapshot_offsets.append(offset)
            yield SmallFile(self.snapshot_path(offset), content)
        if log.epochs.version != self._saved_epoch_version:
            yield SmallFile(f"{log.directory}/{EPOCH_FILE_NAME}", log.epochs.encode())
        yield from self._small_files

    def _add_segments(self, job: FlushJob) -> None:
        log = self._log
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

    def finish(self, job: FlushJob, result: FlushResult) -> None:
        log = self._log
        self._is_running = False
        for release in job.releases:
            release()
        if log.offline_reason is not None:
            # Deleted or failed meanwhile; what the job could not find does not matter any more.
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
        self.look_for_unsaved()
        for offset in job.snapshot_offsets:
            self._unsaved_snapshots.pop(offset, None)
        self._saved_epoch_version = job.epoch_version
        self._synced_directory_version = job.directory_version
        self._is_new = False
        self._small_files.clear()
        log.flushed_offset = max(log.flushed_offset, job.target_offset)
        self._unflushed_since_ms = None if log.flushed_offset == log.end_offset else log.now_ms

    def save_active_indexes(self) -> None:
        """The log is closing: its active segment's indexes are saved like those of a sealed one."""
        active = self._log.active
        active.seal()
        if active.has_unsaved_indexes:
            self._small_files.extend(SmallFile(path, content) for path, content in active.index_files())

    @property
    def generation(self) -> int:
        """How often the log was cut since it was opened."""
        return self._generation

    @property
    def is_running(self) -> bool:
        """Whether a flush is under way."""
        return self._is_running

    @property
    def is_complete(self) -> bool:
        is_flushed = self._log.flushed_offset == self._log.end_offset and not self._unsaved_snapshots
        return is_flushed and not self._small_files and not self._is_running
