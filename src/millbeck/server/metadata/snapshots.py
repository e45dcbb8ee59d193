"""When the metadata log becomes a snapshot, and what happens to the log then.

A snapshot is due once enough bytes were committed since the last one, or some time after the first of them. It is made
of an image, which never changes, so writing it disturbs nobody: encoding gives way to the loop after each batch, and
the file is written on a thread. Then a new segment is begun, and `MetadataRetention` says with which of the snapshots
the log begins from now on. What is below goes: snapshots, and segments that have nothing else. It is looked at again
when the oldest snapshot becomes too old.
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
from millbeck.server.drivers import metadata_files
from millbeck.server.drivers.metadata_retention import KeptSnapshot, MetadataRetention
from millbeck.server.off_loop import run_off_loop
from millbeck.storage import retention
from millbeck.storage.flush import FlushOutcome
from millbeck.storage.log import Log

CLEANING_SECONDS_MIN: Final = 1.0
"""Between two looks at what has become too old."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOptions:
    """``metadata.log.max.record.bytes.between.snapshots`` and ``metadata.log.max.snapshot.interval.ms`` (0: never)."""

    after_bytes: int = 20 * MIB
    after_ms: int = 1 * HOUR_MS
    retention: MetadataRetention = field(default_factory=MetadataRetention)


class MetadataSnapshots:
    """Told of every committed image; ``flush_lock`` is held while the log is flushed or rolled."""

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
        """``voters_at`` says which ``kraft.version`` and voters counted below an offset; ``on_taken`` is told when the
        log begins with a new snapshot."""
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
        self._kept: list[KeptSnapshot] = []
        """Those on disk that the log continues, oldest first."""
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
        """Begin no more; one that is being written is left to itself."""
        self._is_stopped = True
        for timer in (self._timer, self._cleaning_timer):
            if timer is not None:
                timer.cancel()

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Inside a transaction there is no whole image; the next commit asks again.
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
            # Nothing is lost: the log still has everything, and the next snapshot is the next attempt.
            logger.error("the metadata snapshot could not be written, or what is before it not removed: %s", error)
        except KafkaStorageError as error:
            self._on_log_failed(error)
        finally:
            self._is_writing = False

    async def write(self, image: MetadataImage) -> SnapshotId:
        """Make a snapshot of a committed image and let the log begin after it. Raises OSError, `KafkaStorageError`."""
        covered_bytes = self.bytes_since
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        if self.newest_id is not None and self.newest_id >= snapshot_id:
            # A later one was fetched before this was begun, and who voted before it is not known any more.
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
            # A later one was fetched meanwhile.
            return self.newest_id
        self.newest_id = snapshot_id
        self._kept.append(KeptSnapshot(snapshot_id, sum(map(len, batches)), image.timestamp_ms))
        await self._clean(snapshot_id)
        return snapshot_id

    def found(self, kept: Sequence[KeptSnapshot], *, start_epoch: int) -> None:
        """What there was at the start, oldest first, or the one that was fetched and that the log begins with."""
        self._kept = list(kept)
        self.newest_id = self._kept[-1].id
        self.start_epoch = start_epoch
        self.bytes_since = 0
        # The process before may have ended between a snapshot and what was to go.
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
            # It cleans when it is done, if it comes that far.
            self._clean_later(soon=True)
            return
        self._is_writing = True
        self._spawn(self._attempt(self._clean))

    async def _clean(self, taken: SnapshotId | None = None) -> None:
        """Let the log begin with a later snapshot where the retention says so; ``taken`` is one that is new."""
        log, threads = self._log, self._environment.threads
        async with self._flush_lock:
            if self._is_stopped or not self._kept or (taken is not None and taken != self._kept[-1].id):
                return
            now_ms = self._environment.clock.wall_ms()
            if taken is not None and log.log_start_offset < taken.end_offset:
                log.roll(now_ms)
                if not await self._flush():
                    return
            oldest = self._options.retention.begins_with(
                self._kept,
                log_start_offset=log.log_start_offset,
                log_bytes_from=self._log_bytes_from,
                now_ms=now_ms,
            )
            begins_with = self._kept[0].id if oldest is None else oldest.id
            self._kept = [each for each in self._kept if each.id >= begins_with]
            if oldest is not None and log.log_start_offset < begins_with.end_offset:
                log.delete_records(begins_with.end_offset)
                self.start_epoch = begins_with.epoch
            if taken is not None:
                self._on_taken(taken)
            retention.detach(log, log.retention_target(now_ms, log.end_offset))
            raising = log.raising_job()
            if raising is not None:
                await run_off_loop(threads, raising)
            removals = retention.remove_detached(log)
            self._clean_later()
        for removal in removals:
            await run_off_loop(threads, removal.run)
        files = self._environment.files
        await run_off_loop(threads, metadata_files.remove_snapshots_before, files, log.directory, begins_with)

    async def _flush(self) -> bool:
        """The new segment must be there for good before an old one goes."""
        job = self._log.flush_job()
        if job is None:
            return True
        result = await run_off_loop(self._environment.threads, job.run)
        self._log.finish_flush(job, result)
        if result.outcome is FlushOutcome.FAILED:
            raise KafkaStorageError(f"syncing it failed: {result.error}")
        return result.outcome is not FlushOutcome.DEFERRED

    def _log_bytes_from(self, offset: int) -> int:
        """The log's size when it begins there: segments that end before are gone."""
        segments = self._log.segments
        ends = [*self._log.base_offsets[1:], self._log.end_offset + 1]
        return sum(segment.size for segment, end in zip(segments, ends, strict=True) if end > offset)
