"""When the metadata log becomes a snapshot, and what happens to the log then.

A snapshot is due once enough bytes were committed since the last one, or some time after the first of them. It is made
of an image, which never changes, so writing it disturbs nobody: encoding gives way to the loop after each batch, and
the file is written on a thread. Then the log begins where the snapshot ends, and a new segment is begun: the old one
goes at once when nothing was appended meanwhile, otherwise with the next snapshot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import KafkaStorageError
from millbeck.kernel.units import HOUR_MS, MIB
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.snapshot import SnapshotId, snapshot_batches
from millbeck.records.control import Voters
from millbeck.server.drivers import metadata_files
from millbeck.server.off_loop import run_off_loop
from millbeck.storage import retention
from millbeck.storage.flush import FlushOutcome
from millbeck.storage.log import Log

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOptions:
    """``metadata.log.max.record.bytes.between.snapshots`` and ``metadata.log.max.snapshot.interval.ms`` (0: never)."""

    after_bytes: int = 20 * MIB
    after_ms: int = 1 * HOUR_MS


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
        self._image: MetadataImage | None = None
        self._timer: asyncio.TimerHandle | None = None
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
        if self._timer is not None:
            self._timer.cancel()

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
        assert self._image is not None
        try:
            await self.write(self._image)
        except OSError as error:
            # Nothing is lost: the log still has everything, and the next commit leads to the next attempt.
            logger.error("the metadata snapshot could not be written: %s", error)
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
        await self._forget_before(snapshot_id)
        return snapshot_id

    def found(self, snapshot_id: SnapshotId) -> None:
        """The log begins with this one: it was there at the start, or it was fetched."""
        self.newest_id = snapshot_id
        self.start_epoch = snapshot_id.epoch
        self.bytes_since = 0

    async def _forget_before(self, snapshot_id: SnapshotId) -> None:
        log, threads = self._log, self._environment.threads
        async with self._flush_lock:
            if self._is_stopped or log.log_start_offset >= snapshot_id.end_offset:
                return
            now_ms = self._environment.clock.wall_ms()
            log.roll(now_ms)
            # The new segment must be there for good before the old one goes.
            job = log.flush_job()
            if job is not None:
                result = await run_off_loop(threads, job.run)
                log.finish_flush(job, result)
                if result.outcome is FlushOutcome.FAILED:
                    raise KafkaStorageError(f"syncing it failed: {result.error}")
                if result.outcome is FlushOutcome.DEFERRED:
                    return
            log.delete_records(snapshot_id.end_offset)
            self.start_epoch = snapshot_id.epoch
            self._on_taken(snapshot_id)
            retention.detach(log, log.retention_target(now_ms, log.end_offset))
            raising = log.raising_job()
            if raising is not None:
                await run_off_loop(threads, raising)
            removals = retention.remove_detached(log)
        for removal in removals:
            await run_off_loop(threads, removal.run)
        files = self._environment.files
        await run_off_loop(threads, metadata_files.remove_snapshots_before, files, log.directory, snapshot_id)
