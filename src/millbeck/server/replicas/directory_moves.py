"""Move replicas between log directories of this node (AlterReplicaLogDirs).

A *future* log is created in the target directory, under a name that ends in ``-future``. It copies the current log
batch by batch, while the current log still serves reads and writes. Once it has caught up, it replaces the current log
within one iteration of the event loop: the future log gets the real name, the old log is scheduled for deletion, and
the new directory is reported to the controller.

When the current log is truncated, the copy starts over, because the future log may hold the truncated records. A move
that was interrupted by a stop of the process also starts over, at the next start.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import ApiError, KafkaStorageError, LogDirNotFound
from millbeck.kernel.ids import ZERO_UUID
from millbeck.kernel.units import MIB
from millbeck.replication.partition import Partition
from millbeck.replication.throttle import Throttle
from millbeck.storage.directory import LogDirectory
from millbeck.storage.log import Log
from millbeck.storage.segment import ColdRead

if TYPE_CHECKING:
    from millbeck.server.replicas.context import ReplicationContext

STEP_BYTES: Final = 1 * MIB
LAST_STEPS_MAX: Final = 4
"""The maximum number of final copy steps done within one iteration of the event loop. Recent writes are still in the
page cache."""
THROTTLED_SECONDS: Final = 0.1
WAIT_SECONDS: Final = 0.005
EPOCH_MAX: Final = 0x7FFFFFFF

log = logging.getLogger(__name__)


class DirectoryMove:
    """A replica move in progress; ``future`` is None before copying has begun and after the copy was reset."""

    __slots__ = ("future", "generation", "is_cancelled", "partition", "target")

    def __init__(self, partition: Partition, target: LogDirectory) -> None:
        self.partition = partition
        self.target = target
        self.future: Log | None = None
        self.generation = 0
        """That of the current log when copying began: another one means that it was truncated since."""
        self.is_cancelled = False

    def continues(self, source: Log, future: Log) -> bool:
        """Whether ``future`` still is a copy of the beginning of ``source``, and ``source`` the current log.

        A truncation is announced (`DirectoryMoves.truncated`) only once it is durable, so it may have happened already.
        """
        is_unchanged = self.future is future and self.partition.log is source
        return is_unchanged and self.generation == source.durability.generation


class DirectoryMoves:
    def __init__(self, broker: ReplicationContext) -> None:
        self._broker = broker
        self._moves: dict[Partition, DirectoryMove] = {}
        self._throttle = Throttle(
            lambda: broker.config.replication_throttle.replica_alter_log_dirs_io_max_bytes_per_second,
            broker.deadlines.now_ms,
            window_count=broker.config.quotas.alter_log_dirs_replication_quota_window_num,
            window_ms=broker.config.quotas.alter_log_dirs_replication_quota_window_size_seconds * 1000,
        )

    def of(self, partition: Partition) -> DirectoryMove | None:
        return self._moves.get(partition)

    @property
    def all(self) -> list[DirectoryMove]:
        return list(self._moves.values())

    def begin(self, partition: Partition, path: str) -> None:
        """Move a replica to the directory at ``path``; a no-op when it is already there or already moving there.

        Raises LOG_DIR_NOT_FOUND and KAFKA_STORAGE_ERROR.
        """
        logs = self._broker.logs
        target = next((each for each in logs.directories if each.path == path.rstrip("/")), None)
        if target is None:
            raise LogDirNotFound(f"{path} is not one of log.dirs")
        if target.offline_reason is not None or partition.log.is_offline:
            raise KafkaStorageError(f"{path} or the log of {partition.name} is offline")
        known = self._moves.get(partition)
        if known is not None and known.target is target:
            return
        self.cancel(partition)
        if logs.directory_of(partition.name) is not target:
            move = self._moves[partition] = DirectoryMove(partition, target)
            self._broker.spawn(self._run(move))

    def resume(self) -> None:
        """Restart the moves that the previous process left unfinished; called once the broker is registered."""
        logs = self._broker.logs
        found, logs.interrupted_moves = logs.interrupted_moves, {}
        for name, (target, topic_id) in sorted(found.items(), key=lambda each: each[0]):
            topic = self._broker.topics.by_name.get(name.topic)
            partition = None if topic is None else topic.partitions.get(name.partition)
            if topic is None or partition is None or topic_id not in (topic.topic_id, ZERO_UUID):
                continue
            try:
                self.begin(partition, target.path)
            except ApiError as error:
                log.warning("cannot resume moving %s to %s: %s", name, target.path, error)

    def cancel(self, partition: Partition) -> None:
        """Stop the move: the replica was deleted, moved to another broker, or gets another target directory."""
        move = self._moves.pop(partition, None)
        if move is not None:
            move.is_cancelled = True
            self._drop(move)

    def truncated(self, partition: Partition) -> None:
        """Start the copy over: the current log was truncated, so the copied records may be wrong."""
        move = self._moves.get(partition)
        if move is not None:
            self._drop(move)

    def _drop(self, move: DirectoryMove) -> None:
        future, move.future = move.future, None
        if future is not None:
            try:
                self._broker.logs.delete_directory_later(move.target.delete_future_log(future))
            except OSError as error:
                log.error("could not delete the future log of a finished move: %s", error)

    # Copying.

    async def _run(self, move: DirectoryMove) -> None:
        partition = move.partition
        log.info("moving %s to %s", partition.name, move.target.path)
        try:
            await self._broker.cleaner.abort_and_pause(partition)
            while not move.is_cancelled and not await self._step(move):
                pass
        except (OSError, ApiError) as error:
            log.error("cannot move %s to %s: %s", partition.name, move.target.path, error)
            if not move.is_cancelled:
                self.cancel(partition)

    async def _step(self, move: DirectoryMove) -> bool:
        """Copy up to ``STEP_BYTES``; True when the move is over."""
        source, future = move.partition.log, move.future
        if source.is_offline or move.target.offline_reason is not None:
            raise KafkaStorageError("a log directory went offline")
        if future is None or future.end_offset < source.log_start_offset or not move.continues(source, future):
            self._drop(move)
            move.generation = source.durability.generation
            move.future = move.target.create_future_log(
                source.topic_partition,
                source.topic_id,
                source.config,
                now_ms=self._broker.now_ms(),
                start_offset=source.log_start_offset,
                unique=self._broker.environment.randomness.uuid(),
            )
            await self._flush(move, move.future)
            return False
        if future.end_offset >= source.end_offset:
            return await self._finish(move, source, future)
        if self._throttle.is_exceeded:
            await asyncio.sleep(THROTTLED_SECONDS)
            return False
        data = await self._read(source, future.end_offset)
        if not data:
            # Compaction may have removed the last records before the log end: wait until more is written.
            await asyncio.sleep(THROTTLED_SECONDS)
        elif move.continues(source, future):
            self._throttle.record(len(data))
            future.append_as_follower(data, leader_epoch=EPOCH_MAX, now_ms=self._broker.now_ms())
        return False

    async def _read(self, source: Log, offset: int) -> bytes:
        try:
            piece = source.read(offset, size_bytes_max=STEP_BYTES, upto_offset=source.end_offset, nowait=True)
        except ColdRead as cold:
            try:
                await self._broker.in_thread(cold.job)
            finally:
                cold.release()
            piece = source.read(offset, size_bytes_max=STEP_BYTES, upto_offset=source.end_offset)
        if piece is None:
            return b""
        try:
            return await self._broker.in_thread(piece.file.read, piece.size, piece.position)
        finally:
            piece.release()

    async def _flush(self, move: DirectoryMove, future: Log) -> None:
        job = future.flush_job()
        if job is not None:
            future.finish_flush(job, await self._broker.in_thread(job.run))
            # One that a truncation has dropped meanwhile is offline too: the copy starts over.
            if future.is_offline and move.future is future:
                raise future.offline_error()

    async def _finish(self, move: DirectoryMove, source: Log, future: Log) -> bool:
        """Flush, then replace the current log if the rest can be copied without blocking the event loop for long."""
        await self._flush(move, future)
        if move.is_cancelled or not move.continues(source, future):
            return move.is_cancelled
        if source.has_staged or future.durability.is_running:
            await asyncio.sleep(WAIT_SECONDS)
            return False
        for _ in range(LAST_STEPS_MAX):
            if future.end_offset >= source.end_offset:
                break
            piece = source.read(future.end_offset, size_bytes_max=STEP_BYTES, upto_offset=source.end_offset)
            if piece is None:
                return False
            try:
                if piece.size > STEP_BYTES:
                    # One large batch: read it on a thread, in the next step.
                    return False
                data = piece.file.read(piece.size, piece.position)
            finally:
                piece.release()
            future.append_as_follower(data, leader_epoch=EPOCH_MAX, now_ms=self._broker.now_ms())
        is_short = future.end_offset < source.end_offset
        if is_short or (move.partition.waits_for_flush and future.flushed_offset < future.end_offset):
            return False
        for epoch, start_offset in source.epochs.entries():
            future.assign_epoch(epoch, start_offset)
        future.advance_log_start(source.log_start_offset)
        del self._moves[move.partition]
        self._broker.logs.swap(move.partition, future, move.target)
        log.info("moved %s to %s", move.partition.name, move.target.path)
        return True
