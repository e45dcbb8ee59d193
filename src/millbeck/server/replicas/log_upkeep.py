"""Maintains the logs of a node: flushes, checkpoints, retention, scrubbing, and deletion of files.

Each runs at its own interval in a task of the node; files are read and written on threads. A failure of any kind
concerns one log or one directory: the others get their turn, and the next round tries again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from millbeck.kernel.errors import ApiError, KafkaStorageError
from millbeck.kernel.ids import TopicPartition
from millbeck.replication.partition import Partition
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.replicas.log_steps import detach_old_segments
from millbeck.storage import retention
from millbeck.storage.flush import FlushOutcome
from millbeck.storage.scrub import Scrubber

if TYPE_CHECKING:
    from millbeck.server.replicas.context import ReplicationContext
    from millbeck.storage.directory import DirectoryDeletion, LogDirectory
    from millbeck.storage.log import Log
    from millbeck.storage.retention import FileDeletion

REMOVALS_PER_JOB: Final = 100
SCRUB_PAUSE_SECONDS: Final = 1.0
FIRST_SCRUB_SECONDS_MAX: Final = 3600.0
"""The first scrub is no later than this after the start: a node that is restarted every day is scrubbed too."""
PAUSE_SECONDS_MAX: Final = 86_400.0 * 365
STOP_POLL_SECONDS: Final = 0.01

log = logging.getLogger(__name__)


class LogUpkeep:
    """Maintains the logs of ``directories``; its subclass `LogManager` creates and opens them."""

    def __init__(self, broker: ReplicationContext, directories: Sequence[LogDirectory]) -> None:
        self.directories = list(directories)
        self._broker = broker
        self._directory_of: dict[TopicPartition, LogDirectory] = {}
        self._checkpointed: dict[LogDirectory, dict[TopicPartition, int]] = {}
        self._unwritten: set[tuple[LogDirectory, str]] = set()
        """Checkpoints whose last write failed, which is logged once: it is tried again every few seconds."""
        self._due_removals: deque[FileDeletion | DirectoryDeletion] = deque()
        self._is_removing = False
        self._running_flushes = 0
        self._is_stopping = False
        for directory in self.directories:
            directory.on_flush_wanted = self._flush_wanted

    def start_upkeep(self) -> None:
        options = self._broker.config.upkeep
        self._every(options.log_retention_check_interval_ms, self._apply_retention)
        self._every(options.log_flush_scheduler_interval_ms, self._flush_due)
        self._every(options.log_flush_offset_checkpoint_interval_ms, self._checkpoint)
        self._every(options.replica_high_watermark_checkpoint_interval_ms, self._checkpoint_high_watermarks)
        self._every(options.log_scrub_interval_ms, self._scrub, first_seconds_max=FIRST_SCRUB_SECONDS_MAX)

    def _every(
        self,
        interval_ms: int,
        work: Callable[[], Coroutine[Any, Any, None]],
        first_seconds_max: float = PAUSE_SECONDS_MAX,
    ) -> None:
        if interval_ms > 0:
            # The default of log.flush.scheduler.interval.ms (2^63-1) exceeds what asyncio.sleep can take.
            interval_seconds = min(interval_ms / 1000, PAUSE_SECONDS_MAX)
            self._broker.spawn(self._repeat(min(interval_seconds, first_seconds_max), interval_seconds, work))

    async def _repeat(
        self, first_seconds: float, interval_seconds: float, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        pause_seconds = first_seconds
        while True:
            await asyncio.sleep(pause_seconds)
            pause_seconds = interval_seconds
            try:
                await work()
            except (OSError, ApiError) as error:
                log.error("log upkeep: %s", error)
            except Exception as error:
                self._broker.report(error)

    async def _each(self, work: str, visit: Callable[[Partition], Coroutine[Any, Any, None]]) -> None:
        """Visit all partitions; an error of one does not stop the others. ``work`` names the visit in the log."""
        turns = TimeSlices(self._broker.environment.clock)
        for partition in self._broker.topics.all_partitions():
            await turns.yield_to_loop()
            try:
                await visit(partition)
            except (OSError, ApiError) as error:
                log.error("%s of %s: %s", work, partition.name, error)
            except Exception as error:
                self._broker.isolation.failed((work, partition.name), error)

    def _written(self, partition: Partition, now_ms: int) -> None:
        """Called on the event loop after an append: start a flush or a writeback when one is due."""
        if partition.log.is_flush_due(now_ms):
            self._broker.spawn(self.flush(partition))
        piece = partition.log.writeback_range()
        if piece is not None:
            self._broker.spawn(self._write_back(piece.file.start_writeback, piece.position, piece.size, piece.release))

    async def _write_back(
        self, start: Callable[[int, int], None], position: int, size: int, release: Callable[[], None]
    ) -> None:
        try:
            await self._broker.in_thread(start, position, size)
        finally:
            release()

    async def flush(self, partition: Partition) -> None:
        """Flush a partition's log up to its current end; at most one flush of a log runs at a time."""
        while not self._is_stopping:
            # A move or a repair may give the partition another log meanwhile, which this job did not flush.
            flushed = partition.log
            job = flushed.flush_job()
            if job is None:
                return
            self._running_flushes += 1
            try:
                result = await self._broker.in_thread(job.run)
            finally:
                self._running_flushes -= 1
            flushed.finish_flush(job, result)
            partition.flushed()
            is_more_due = job.cut_version is not None or partition.log.is_flush_due(self._broker.now_ms())
            if result.outcome is not FlushOutcome.DONE or not is_more_due:
                return

    def _flush_wanted(self, wanting: Log) -> None:
        """Flush a log that refuses appends until it is flushed. The metadata log is flushed by the quorum driver."""
        name = wanting.topic_partition
        topic = self._broker.topics.by_name.get(name.topic)
        partition = None if topic is None else topic.partitions.get(name.partition)
        if partition is not None and partition.log is wanting:
            self._broker.spawn(self.flush(partition))

    async def stop_flushing(self) -> None:
        """Start no more flushes and wait for the running ones: a log that is being flushed cannot be closed cleanly."""
        self._is_stopping = True
        while self._running_flushes:
            await asyncio.sleep(STOP_POLL_SECONDS)

    async def _flush_due(self) -> None:
        async def flush(partition: Partition) -> None:
            if partition.log.is_flush_due(self._broker.now_ms()):
                await self.flush(partition)
            else:
                await asyncio.sleep(0)

        await self._each("flush", flush)

    async def _checkpoint(self) -> None:
        """Flush recent appends, then write the recovery point checkpoints."""

        async def flush(partition: Partition) -> None:
            if partition.log.end_offset > partition.log.flushed_offset and not partition.log.is_offline:
                await self.flush(partition)

        await self._each("flush", flush)
        # Building the checkpoint job visits every log, too: yield before it.
        await asyncio.sleep(0)
        for directory in self.directories:
            if directory.offline_reason is None:
                await self._write_checkpoints(directory)

    async def _write_checkpoints(self, directory: LogDirectory) -> None:
        """Write a directory's checkpoints. A failure keeps the old files and does not affect other directories."""
        try:
            await self._broker.in_thread(directory.checkpoint_job())
        except (OSError, KafkaStorageError) as error:
            self._not_written(directory, "checkpoints", error)
        else:
            self._unwritten.discard((directory, "checkpoints"))

    def _not_written(self, directory: LogDirectory, what: str, error: Exception) -> None:
        if (directory, what) not in self._unwritten:
            self._unwritten.add((directory, what))
            log.error("the %s of %s could not be written: %s", what, directory.path, error)

    async def _checkpoint_high_watermarks(self) -> None:
        watermarks: dict[LogDirectory, dict[TopicPartition, int]] = {}
        turns = TimeSlices(self._broker.environment.clock)
        for partition in self._broker.topics.all_partitions():
            await turns.yield_to_loop()
            directory = self._directory_of.get(partition.name)
            if directory is not None and directory.offline_reason is None:
                watermarks.setdefault(directory, {})[partition.name] = partition.high_watermark
        await self._check_present()
        for directory, offsets in watermarks.items():
            if directory.offline_reason is not None:
                continue
            # Do not rewrite an unchanged checkpoint: an idle node does no disk writes.
            if self._checkpointed.get(directory) != offsets:
                try:
                    await self._broker.in_thread(directory.write_high_watermarks, offsets)
                except OSError as error:
                    self._not_written(directory, "high watermarks", error)
                    continue
                self._unwritten.discard((directory, "high watermarks"))
                self._checkpointed[directory] = offsets

    async def _check_present(self) -> None:
        """Take log directories offline that no longer exist, as Kafka does when it cannot write a checkpoint there."""
        files = self._broker.environment.files
        for directory in self.directories:
            if directory.offline_reason is None:
                is_present = await self._broker.in_thread(files.exists, directory.meta_path)
                with suppress(KafkaStorageError):
                    directory.check_present(is_present)

    async def _apply_retention(self) -> None:
        detached: list[Log] = []
        await self._each("retention", partial(self._detach_old_segments, detached))
        await self._remove_detached(detached)

    async def _detach_old_segments(self, detached: list[Log], partition: Partition) -> None:
        """Detach a log's old segments, append the log to ``detached`` if there are any, and forget idle producers."""
        await asyncio.sleep(0)
        now_ms = self._broker.now_ms()
        partition.log.expire_producers(now_ms, self._broker.config.upkeep.producer_id_expiration_ms)
        start_before = partition.log.log_start_offset
        try:
            if await detach_old_segments(
                partition.log, partial(self.flush, partition), now_ms=now_ms, high_watermark=partition.high_watermark
            ):
                detached.append(partition.log)
        finally:
            if partition.log.log_start_offset != start_before:
                partition.log_start_moved()

    async def _remove_detached(self, logs: Sequence[Log]) -> None:
        """Write the new log start offsets to the checkpoints, once per directory, then schedule the deletions."""
        for directory in self.directories:
            if any(directory.logs.get(each.topic_partition) is each for each in logs):
                # When the disk is full the write fails, and the deletion below frees space.
                await self._write_checkpoints(directory)
        for each in logs:
            try:
                self.delete_files_later(retention.rename_detached(each))
            except OSError as error:
                log.error("old segments of %s could not be renamed: %s", each.topic_partition, error)

    async def _scrub(self) -> None:
        """Verify the flushed part of all logs by reading it again slowly; a damaged log goes offline."""
        await self._each("scrub", partial(self.scrub, pause_seconds=SCRUB_PAUSE_SECONDS))

    async def scrub(self, partition: Partition, *, pause_seconds: float) -> None:
        """Verify the flushed part of one log; damage takes it offline. Raises OSError."""
        scrubber = Scrubber(partition.log)
        while (job := scrubber.next_job()) is not None:
            try:
                await self._broker.in_thread(job.run)
            finally:
                scrubber.finish(job)
            await asyncio.sleep(pause_seconds)

    def delete_files_later(self, removals: Sequence[FileDeletion]) -> None:
        """Delete files that are no longer part of a log, each after its delay."""
        for removal in removals:
            self._remove_later(removal)

    def _remove_later(self, removal: FileDeletion | DirectoryDeletion) -> None:
        self._broker.deadlines.after(removal.delay_ms, partial(self._removal_due, removal))

    def _removal_due(self, removal: FileDeletion | DirectoryDeletion) -> None:
        self._due_removals.append(removal)
        if not self._is_removing:
            self._is_removing = True
            self._broker.spawn(self._remove_due())

    async def _remove_due(self) -> None:
        """Delete the files that are due. A deleted topic may have thousands.

        Up to ``REMOVALS_PER_JOB`` deletions share a job, so that a busy event loop does not delay them. One job runs at
        a time, so that they do not fill the thread pool's queue. One task does all, since a waiting task needs 3 KB.
        """
        try:
            while self._due_removals:
                count = min(len(self._due_removals), REMOVALS_PER_JOB)
                removals = [self._due_removals.popleft() for _ in range(count)]
                for error in await self._broker.in_thread(_remove_all, removals):
                    log.error("files of a deleted segment or log could not be removed: %s", error)
        finally:
            self._is_removing = False


def _remove_all(removals: Sequence[FileDeletion | DirectoryDeletion]) -> list[OSError]:
    """Run on a thread; a failed deletion does not stop the others."""
    errors = []
    for removal in removals:
        try:
            removal.run()
        except OSError as error:
            errors.append(error)
    return errors
