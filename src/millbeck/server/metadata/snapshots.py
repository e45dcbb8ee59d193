"""Generate metadata snapshots, and delete the part of the log that they cover.

A snapshot is due once enough bytes were committed since the last one, or some time after the first of them. It is
generated from an immutable image, so it blocks nothing: encoding yields to the event loop after each batch, and the
file is written on a thread. Then the log rolls to a new segment, and `MetadataRetention` decides which snapshot the log
starts with. Older snapshots, and segments entirely before the log start, are deleted. This cleanup runs again when the
oldest snapshot exceeds its age limit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import KafkaStorageError
from millbeck.kernel.units import HOUR_MS, MIB
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.snapshot import SnapshotId, snapshot_batches
from millbeck.records.control import Voters
from millbeck.server.loop.tasks import run_off_loop
from millbeck.server.metadata import metadata_files
from millbeck.server.metadata.retention import MetadataRetention, RetainedSnapshot
from millbeck.storage import retention
from millbeck.storage.flush import FlushOutcome
from millbeck.storage.log import Log

CLEANING_SECONDS_MIN: Final = 1.0
"""The minimum interval between two checks for expired snapshots."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOptions:
    """``metadata.log.max.record.bytes.between.snapshots`` and ``metadata.log.max.snapshot.interval.ms`` (0: never)."""

    after_bytes: int = 20 * MIB
    after_ms: int = 1 * HOUR_MS
    retention: MetadataRetention = field(default_factory=MetadataRetention)


class MetadataSnapshots:
    """Takes snapshots of committed images; ``flush_lock`` is held while the log is flushed or rolled."""

    def __init__(
        self,
        environment: Environment,
        log: Log,
        options: SnapshotOptions,
        *,
        flush_lock: asyncio.Lock,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        on_log_failed: Callable[[Exception], object],
        voters_at: Callable[[int], tuple[int, Voters | None]] = lambda end_offset: (0, None),
        on_taken: Callable[[SnapshotId], None] = lambda snapshot_id: None,
    ) -> None:
        """``voters_at`` returns the ``kraft.version`` and voters in force below an offset; ``on_taken`` is called with
        each new snapshot."""
        self._environment = environment
        self._log = log
        self._options = options
        self._flush_lock = flush_lock
        self._spawn = spawn
        self._on_log_failed = on_log_failed
        self._voters_at = voters_at
        self._on_taken = on_taken
        self.start_epoch = 0
        """The epoch of the last record before the log's start."""
        self.newest_id: SnapshotId | None = None
        self.bytes_since = 0
        self._kept: list[RetainedSnapshot] = []
        """The snapshots on disk that the log continues from, oldest first."""
        self._image: MetadataImage | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._cleaning_timer: asyncio.TimerHandle | None = None
        self._is_writing = False
        self._is_stopped = False

    def committed(self, image: MetadataImage, size_bytes: int) -> None:
        self._image = image
        self.bytes_since += size_bytes
        if self._is_writing or self._is_stopped or not self.bytes_since:
            return
        if self.bytes_since >= self._options.after_bytes:
            self._begin()
        elif self._timer is None and self._options.after_ms:
            self._timer = asyncio.get_running_loop().call_later(self._options.after_ms / 1000, self._begin)

    def stop(self) -> None:
        """Start no more snapshots; one that is being written is not awaited."""
        self._is_stopped = True
        for timer in (self._timer, self._cleaning_timer):
            if timer is not None:
                timer.cancel()

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Inside a metadata transaction the image is incomplete; the next commit tries again.
        if self._is_writing or self._is_stopped or self._image is None or self._image.open_transaction is not None:
            return
        self._is_writing = True
        self._spawn(self._write_and_log())

    async def _write_and_log(self) -> None:
        image = self._image
        assert image is not None
        await self._attempt(lambda: self.write(image))

    async def _attempt(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        try:
            await work()
        except OSError as error:
            # No data is lost: the log still has everything, and the next snapshot retries.
            logger.error("could not write a metadata snapshot or delete what it covers: %s", error)
        except KafkaStorageError as error:
            self._on_log_failed(error)
        finally:
            self._is_writing = False

    async def write(self, image: MetadataImage) -> SnapshotId:
        """Write a snapshot of a committed image, then clean the log. Raises OSError, `KafkaStorageError`."""
        covered_bytes = self.bytes_since
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        if self.newest_id is not None and self.newest_id >= snapshot_id:
            # A later snapshot was fetched before this one began, and the voters before it are no longer known.
            return self.newest_id
        kraft_version, voters = self._voters_at(snapshot_id.end_offset)
        batches = []
        for batch in snapshot_batches(
            image.records(),
            epoch=image.epoch,
            last_contained_log_timestamp=image.timestamp_ms,
            now_ms=self._environment.clock.wall_ms(),
            metadata_version=image.features.metadata_version,
            kraft_version=kraft_version,
            voters=voters,
        ):
            batches.append(batch)
            await asyncio.sleep(0)
        files, threads = self._environment.files, self._environment.threads
        await run_off_loop(threads, metadata_files.write_snapshot, files, self._log.directory, snapshot_id, batches)
        self.bytes_since = max(0, self.bytes_since - covered_bytes)
        if self.newest_id is not None and self.newest_id >= snapshot_id:
            # A later snapshot was fetched meanwhile.
            return self.newest_id
        self.newest_id = snapshot_id
        self._kept.append(RetainedSnapshot(snapshot_id, sum(map(len, batches)), image.timestamp_ms))
        await self._clean(snapshot_id)
        return snapshot_id

    def found(self, kept: Sequence[RetainedSnapshot], *, start_epoch: int) -> None:
        """Set the known snapshots: those found at start, oldest first, or a fetched one that the log starts with."""
        self._kept = list(kept)
        self.newest_id = self._kept[-1].id
        self.start_epoch = start_epoch
        self.bytes_since = 0
        # The previous process may have stopped between a snapshot and the cleanup after it.
        self._clean_later(soon=self._log.log_start_offset < self.newest_id.end_offset)

    def _clean_later(self, *, soon: bool = False) -> None:
        if self._cleaning_timer is not None:
            self._cleaning_timer.cancel()
            self._cleaning_timer = None
        due_ms = 0 if soon else self._options.retention.expires_at_ms(self._kept)
        if due_ms is not None and not self._is_stopped:
            delay_s = max(CLEANING_SECONDS_MIN, (due_ms - self._environment.clock.wall_ms()) / 1000)
            self._cleaning_timer = asyncio.get_running_loop().call_later(delay_s, self._begin_cleaning)

    def _begin_cleaning(self) -> None:
        self._cleaning_timer = None
        if self._is_writing:
            # The running snapshot cleans up when it succeeds; check again in case it fails.
            self._clean_later(soon=True)
            return
        self._is_writing = True
        self._spawn(self._attempt(self._clean))

    async def _clean(self, taken: SnapshotId | None = None) -> None:
        """Advance the log start to a later snapshot if retention requires it; ``taken`` is a new snapshot."""
        log, threads = self._log, self._environment.threads
        async with self._flush_lock:
            if self._is_stopped or not self._kept or (taken is not None and taken != self._kept[-1].id):
                return
            now_ms = self._environment.clock.wall_ms()
            if taken is not None and log.log_start_offset < taken.end_offset:
                log.roll(now_ms)
                if not await self._flush():
                    return
            oldest = self._options.retention.oldest_to_keep(
                self._kept,
                log_start_offset=log.log_start_offset,
                log_bytes_from=self._log_bytes_from,
                now_ms=now_ms,
            )
            oldest_to_keep = self._kept[0].id if oldest is None else oldest.id
            self._kept = [each for each in self._kept if each.id >= oldest_to_keep]
            if oldest is not None and log.log_start_offset < oldest_to_keep.end_offset:
                log.delete_records(oldest_to_keep.end_offset)
                self.start_epoch = oldest_to_keep.epoch
            if taken is not None:
                self._on_taken(taken)
            retention.detach(log, log.retention_target(now_ms, log.end_offset))
            raising = log.raising_job()
            if raising is not None:
                await run_off_loop(threads, raising)
            removals = retention.rename_detached(log)
            self._clean_later()
        for removal in removals:
            await run_off_loop(threads, removal.run)
        files = self._environment.files
        await run_off_loop(threads, metadata_files.remove_snapshots_before, files, log.directory, oldest_to_keep)

    async def _flush(self) -> bool:
        """Flush the log: the new segment must be durable before an old one is deleted."""
        job = self._log.flush_job()
        if job is None:
            return True
        result = await run_off_loop(self._environment.threads, job.run)
        self._log.finish_flush(job, result)
        if result.outcome is FlushOutcome.FAILED:
            raise KafkaStorageError(f"syncing the metadata log failed: {result.error}")
        return result.outcome is not FlushOutcome.DEFERRED

    def _log_bytes_from(self, offset: int) -> int:
        """The size of the log if it started at ``offset``, without the segments that end before it."""
        segments = self._log.segments
        ends = [*self._log.base_offsets[1:], self._log.end_offset + 1]
        return sum(segment.size for segment, end in zip(segments, ends, strict=True) if end > offset)
