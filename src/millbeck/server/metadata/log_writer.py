"""Appends to, flushes, truncates and replaces the metadata log for the quorum driver.

Records appended while a flush runs are covered by the next flush. A truncation, or a snapshot that replaces the log,
waits for the running flush, and is durable when its event is returned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import CorruptMessage
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.snapshot import SnapshotId
from millbeck.raft.effects import AppendFetched
from millbeck.raft.events import Event, LogAppended, LogFlushed, LogTruncated, SnapshotInstalled
from millbeck.raft.voters import VoterSet
from millbeck.records import batch as record_batch
from millbeck.records.control import KRaftVersion, Voters
from millbeck.server.loop.tasks import run_off_loop
from millbeck.server.metadata import metadata_files
from millbeck.server.metadata.loading import voter_changes_of
from millbeck.server.metadata.replay import MetadataReplay
from millbeck.server.metadata.snapshots import MetadataSnapshots
from millbeck.server.replicas.log_steps import truncate
from millbeck.storage.flush import FlushOutcome
from millbeck.storage.follower_append import UnexpectedAppendOffset
from millbeck.storage.log import Log
from millbeck.storage.producer_state import AppendOrigin

T = TypeVar("T")

logger = logging.getLogger(__name__)


class MetadataLogWriter:
    def __init__(
        self,
        environment: Environment,
        log: Log,
        replay: MetadataReplay,
        snapshots: MetadataSnapshots,
        *,
        flush_lock: asyncio.Lock,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        deliver: Callable[[Event], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """``deliver`` gets the event of each flush, ``on_failed`` the error of a failed flush."""
        self.environment = environment
        self.log = log
        self._replay = replay
        self._snapshots = snapshots
        self._flush_lock = flush_lock
        self._spawn = spawn
        self._deliver = deliver
        self._on_failed = on_failed
        self._reported_flushed_offset = -1
        self._is_flushing = False
        self._is_stopped = False

    def write(self, batch: bytes, epoch: int, now_ms: int) -> None:
        """Append a batch as leader. Raises `ApiError`."""
        self.log.stage(batch, leader_epoch=epoch, now_ms=now_ms, origin=AppendOrigin.QUORUM)
        self.log.write_staged()
        self.ensure_flush()

    def append_fetched(self, effect: AppendFetched) -> LogAppended:
        """Append the leader's batches; nothing when they do not continue this log."""
        changes: list[tuple[int, KRaftVersion | Voters]] = []
        before = self.log.end_offset
        try:
            self.log.append_as_follower(
                effect.records, leader_epoch=effect.epoch, now_ms=self.environment.clock.wall_ms()
            )
            for _, _, view in record_batch.split(effect.records, partial_tail=True):
                changes += voter_changes_of(view)
        except (CorruptMessage, UnexpectedAppendOffset) as error:
            # The batches do not continue this log: fetch again.
            logger.warning("the batches from the quorum leader cannot be appended: %s", error)
        appended = tuple(change for change in changes if before <= change[0] < self.log.end_offset)
        self.ensure_flush()
        return LogAppended(end_offset=self.log.end_offset, changes=appended)

    async def truncate(self, offset: int) -> LogTruncated:
        async with self._flush_lock:
            removals = await truncate(self.log, offset, self._in_thread, self._flush_once)
            await self._flush_rest()
        logger.info(
            "the metadata log was truncated to offset %d, where it diverges from the leader's", self.log.end_offset
        )
        for removal in removals:
            await run_off_loop(self.environment.threads, removal.run)
        self._reported_flushed_offset = self.log.flushed_offset
        return LogTruncated(end_offset=self.log.end_offset)

    async def install(self, snapshot_id: SnapshotId) -> SnapshotInstalled | LogTruncated:
        """Replace the log by a fetched snapshot; if it is damaged, nothing changes and it is fetched again."""
        files, threads, directory = self.environment.files, self.environment.threads, self.log.directory
        try:
            found = await run_off_loop(threads, metadata_files.finish_snapshot, files, directory, snapshot_id)
        except MetadataFault as error:
            logger.warning("the fetched snapshot is damaged and is fetched again: %s", error)
            return LogTruncated(end_offset=self.log.end_offset)
        async with self._replay.is_reading, self._flush_lock:
            removals = await truncate(
                self.log, snapshot_id.end_offset, self._in_thread, self._flush_once, starts_over=True
            )
            await self._flush_rest()
            self._snapshots.found([found.kept], start_epoch=snapshot_id.epoch)
            self._replay.begin_with(found)
        for removal in removals:
            await run_off_loop(threads, removal.run)
        await run_off_loop(threads, metadata_files.remove_snapshots_before, files, directory, snapshot_id)
        version, voters = found.content.kraft_version, found.content.voters
        self._reported_flushed_offset = self.log.flushed_offset
        return SnapshotInstalled(
            end_offset=snapshot_id.end_offset,
            kraft_version=version,
            voters=VoterSet.of(voters.voters) if version >= 1 and voters is not None else None,
        )

    def stop(self) -> None:
        """Stop flushing: the log has failed."""
        self._is_stopped = True

    def ensure_flush(self) -> None:
        """Start a flush, unless a running one will be followed by another."""
        if not self._is_flushing and self.log.flushed_offset < self.log.end_offset:
            self._is_flushing = True
            self._spawn(self._flush_all())

    async def _flush_all(self) -> None:
        """Flush until everything appended is durable; records appended during a flush are covered by the next one."""
        try:
            while not self._is_stopped and self._reported_flushed_offset < self.log.end_offset:
                async with self._flush_lock:
                    await self._flush_once()
                self._reported_flushed_offset = self.log.flushed_offset
                self._deliver(LogFlushed(end_offset=self.log.flushed_offset))
        except Exception as error:
            self._on_failed(error)
        finally:
            self._is_flushing = False

    async def _flush_once(self) -> None:
        job = self.log.flush_job()
        if job is not None:
            result = await run_off_loop(self.environment.threads, job.run)
            self.log.finish_flush(job, result)
            if result.outcome is not FlushOutcome.DONE:
                raise MetadataFault(f"syncing it {result.outcome.value}: {result.error}")
        elif self.log.flushed_offset < self.log.end_offset:
            raise MetadataFault(f"it ends at {self.log.end_offset} and is durable up to {self.log.flushed_offset} only")

    async def _flush_rest(self) -> None:
        """Flush the log after a truncation, before its new end offset is reported to the state machine."""
        while self.log.flushed_offset < self.log.end_offset:
            await self._flush_once()

    async def _in_thread(self, job: Callable[[], T], /) -> T:
        return await run_off_loop(self.environment.threads, job)
