"""One entry of ``log.dirs``: its logs and the checkpoint files they share.

The directory is locked while in use (``.lock``). The clean-shutdown marker is read and removed at once, before anything
is written, and is written again only when every log was closed cleanly. Checkpoints of recovery points and log start
offsets are replaced as a whole. An entry on disk is never higher than the actual offset of the log that has that name
now; so creating or truncating a log may rewrite the checkpoints first.

A failure after which the disk cannot be trusted (a failed sync, a write that could not be rolled back) takes all logs
of the directory offline; ``on_failure`` tells the node.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection

from millbeck.kernel.environment import Files
from millbeck.kernel.errors import KafkaStorageError
from millbeck.kernel.ids import TopicPartition, Uuid
from millbeck.storage import checkpoints, loading, partition_directory
from millbeck.storage.atomic_file import (
    TEMPORARY_SUFFIX,
    make_directory_durably,
    read_file,
    replace_file,
    write_file,
)
from millbeck.storage.checkpoint_writer import CheckpointWriter
from millbeck.storage.checkpoints import CheckpointError
from millbeck.storage.config import LogConfig
from millbeck.storage.damage_removal import RepairJob, RepairResult
from millbeck.storage.file_cache import FileCache
from millbeck.storage.flush import SmallFile
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.log_environment import LogEnvironment
from millbeck.storage.log_state import LogState
from millbeck.storage.partition_directory import DirectoryKind
from millbeck.storage.properties import FILE_NAME as META_FILE_NAME
from millbeck.storage.properties import MetaProperties, read_meta_properties

logger = logging.getLogger(__name__)

LOCK_FILE_NAME = ".lock"
CLEAN_SHUTDOWN_FILE_NAME = ".kafka_cleanshutdown"
NO_BROKER_EPOCH = -1

_End = tuple[LogState, int, int]
"""A log, its truncation count and its end offset: the same end offset may recur after a truncation with other
batches.
"""


def _end_of(log: LogState) -> _End:
    return log, log.durability.generation, log.end_offset


class DirectoryLocked(Exception):
    """Another process uses this log directory."""


class DirectoryDeletion:
    """The removal of a deleted log's directory; `run` is called off the event loop once ``delay_ms`` has passed."""

    __slots__ = ("_files", "delay_ms", "path")

    def __init__(self, files: Files, path: str, delay_ms: int) -> None:
        self._files = files
        self.path = path
        self.delay_ms = delay_ms

    def run(self) -> None:
        try:
            self._files.remove_tree(self.path)
        except FileNotFoundError:
            pass


class LogDirectory:
    def __init__(
        self,
        files: Files,
        path: str,
        *,
        cache: FileCache,
        index_cache: IndexCache,
        jitter_below: Callable[[int], int],
        on_failure: Callable[[str], None],
    ) -> None:
        """Lock the directory and read its metadata files.

        Raises `DirectoryLocked`, `MetaPropertiesError` or OSError. The directory is created when it does not exist.
        """
        self.path = path
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        """Future logs: replicas that are being moved here from another directory."""
        self.offline_reason: str | None = None
        self.offline_count = 0
        """The number of logs that have gone offline, deliberately or not; it never decreases."""
        self.on_flush_wanted: Callable[[Log], None] | None = None
        """Called with a log that must be flushed before it accepts writes again."""
        self.on_damage: Callable[[], None] | None = None
        """Called when a log goes offline because of corruption, synchronously from the operation that found it."""
        self._files = files
        self._on_failure = on_failure
        self._environment = LogEnvironment(files, cache, index_cache, jitter_below, self)
        self.meta_path = f"{path}/{META_FILE_NAME}"
        make_directory_durably(files, path)
        try:
            self._lock = files.lock(f"{path}/{LOCK_FILE_NAME}")
        except BlockingIOError as error:
            raise DirectoryLocked(f"{path} is in use by another process") from error
        try:
            self.meta: MetaProperties | None = read_meta_properties(files, path)
            self._remove_temporary_files()
            self.had_clean_shutdown, self.previous_broker_epoch = self._take_clean_shutdown_marker()
            self._checkpoints = CheckpointWriter(files, path)
            self.had_clean_shutdown = self.had_clean_shutdown and not self._checkpoints.is_damaged
            # Logs that are still to be opened: their checkpoint entries are kept.
            self._unopened = dict.fromkeys([*self._checkpoints.recovery_points, *self._checkpoints.log_start_offsets])
            self._cutting: dict[TopicPartition, tuple[int, _End]] = {}
            """Logs that are about to be truncated: the highest checkpoint entry allowed while their end is
            unchanged.
            """
        except BaseException:
            self._lock.release()
            raise

    # Logs.

    def partitions(self) -> list[tuple[TopicPartition, Uuid]]:
        """The logs in the directory, each with the topic id it was created for (zero when unknown)."""
        found = []
        for name in self._files.names(self.path):
            parsed = partition_directory.parse_name(name)
            if (
                parsed is not None
                and parsed.kind is DirectoryKind.LOG
                and self._files.is_directory(f"{self.path}/{name}")
            ):
                topic_id = partition_directory.read_metadata(self._files, f"{self.path}/{name}")
                found.append((parsed.topic_partition, topic_id))
        return found

    def open_log(self, topic_partition: TopicPartition, topic_id: Uuid, config: LogConfig, *, now_ms: int) -> Log:
        """Open an existing log. Raises OSError; a corrupt log is returned offline."""
        assert topic_partition not in self.logs, f"{topic_partition} is open already"
        self._check_online()
        log = loading.open_log(
            self._environment,
            self._path_of(topic_partition),
            topic_partition,
            topic_id,
            config,
            now_ms=now_ms,
            recovery_point=self._checkpoints.recovery_points.get(topic_partition, 0),
            log_start_offset=self._checkpoints.log_start_offsets.get(topic_partition, 0),
            had_clean_shutdown=self.had_clean_shutdown,
        )
        if not self.had_clean_shutdown:
            # The log may have been created just before the crash, with none of its files synced.
            log.durability.note_new(self._write_metadata(topic_partition, topic_id))
        self._add(log)
        return log

    def create_log(
        self, topic_partition: TopicPartition, topic_id: Uuid, config: LogConfig, *, now_ms: int, start_offset: int = 0
    ) -> Log:
        """Create an empty log. Its directory becomes durable with its first flush. Raises OSError."""
        assert topic_partition not in self.logs, f"{topic_partition} is open already"
        self._check_online()
        self.check_present(self._files.exists(self.meta_path))
        job = self.creating_job(topic_partition, start_offset)
        if job is not None:
            job()
        path = self._path_of(topic_partition)
        self._files.make_directory(path)
        metadata = self._write_metadata(topic_partition, topic_id)
        log = loading.create_log(
            self._environment, path, topic_partition, topic_id, config, now_ms=now_ms, start_offset=start_offset
        )
        log.durability.note_new(metadata)
        self._add(log)
        return log

    def _add(self, log: Log) -> None:
        self._unopened.pop(log.topic_partition, None)
        self.logs[log.topic_partition] = log

    def repair_job(self, damaged: Log, *, now_ms: int) -> RepairJob:
        """A job that truncates a damaged log before its first corrupt batch; the records are then fetched from another
        replica.

        Run it on a thread and pass its result to `finish_repair`; until then nothing else may touch the log's files.
        First run the jobs that `lowering_job` returns for ``damaged_offset``, until it returns None. Raises OSError.
        """
        assert self.logs.get(damaged.topic_partition) is damaged, f"{damaged} is not here"
        self._check_online()
        damaged.close_files()
        return RepairJob(self._files, damaged, now_ms)

    def finish_repair(self, damaged: Log, repaired: RepairResult, *, now_ms: int) -> Log:
        """Reopen the repaired log; return the damaged one when earlier damage was found. Raises OSError."""
        key = damaged.topic_partition
        assert self.logs.get(key) is damaged, f"{damaged} is not here"
        self._check_online()
        if repaired.damaged_offset >= 0:
            damaged.damaged_offset = repaired.damaged_offset
            return damaged
        log = loading.open_log(
            self._environment,
            self._path_of(key),
            key,
            damaged.topic_id,
            damaged.config,
            now_ms=now_ms,
            recovery_point=repaired.end_offset,
            log_start_offset=damaged.log_start_offset,
            had_clean_shutdown=True,
        )
        self.offline_count -= 1
        self._add(log)
        return log

    # Replicas that are moved here from another directory (future logs).

    def create_future_log(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        *,
        now_ms: int,
        start_offset: int,
        unique: Uuid,
    ) -> Log:
        """Create an empty log that will replace the one in another directory. Raises OSError."""
        self._check_online()
        self.check_present(self._files.exists(self.meta_path))
        path = f"{self.path}/{partition_directory.renamed(topic_partition, DirectoryKind.FUTURE, unique)}"
        self._files.make_directory(path)
        metadata = f"{path}/{partition_directory.METADATA_FILE_NAME}"
        write_file(self._files, metadata, partition_directory.encode_metadata(topic_id), sync=False)
        log = loading.create_log(
            self._environment, path, topic_partition, topic_id, config, now_ms=now_ms, start_offset=start_offset
        )
        log.durability.note_new(SmallFile(metadata, None))
        self.futures[topic_partition] = log
        return log

    def delete_future_log(self, future: Log) -> DirectoryDeletion:
        del self.futures[future.topic_partition]
        future.mark_offline("it was not needed any more", is_wanted=True)
        self.offline_count -= 1
        future.close_files()
        return DirectoryDeletion(self._files, future.directory, 0)

    def replace_current_with_future(self, future: Log) -> None:
        """Make the future log the current one; no flush of it may be running. Raises OSError."""
        key = future.topic_partition
        assert key not in self.logs, f"{key} is open already"
        path = self._path_of(key)
        self._files.rename(future.directory, path)
        future.relocate(path)
        del self.futures[key]
        future.durability.note_new(SmallFile(f"{path}/{partition_directory.METADATA_FILE_NAME}", None))
        self._add(future)

    def all_opened(self, *, keep: Collection[TopicPartition] = ()) -> None:
        """Drop the checkpoint entries of unopened logs except ``keep``, once every log to be served has been
        opened.
        """
        self._unopened = dict.fromkeys(key for key in self._unopened if key in keep)

    def delete_log(self, topic_partition: TopicPartition, unique: Uuid) -> DirectoryDeletion:
        """Take a log out of service; the returned job removes its files later. Raises OSError."""
        delay_ms = self.logs[topic_partition].config.file_delete_delay_ms
        return DirectoryDeletion(self._files, self._set_aside(topic_partition, DirectoryKind.DELETED, unique), delay_ms)

    def delete_unfinished(self, topic_partition: TopicPartition, unique: Uuid) -> DirectoryDeletion | None:
        """Delete the remains of a `create_log` that a crash interrupted: a directory that is empty or has only its
        metadata file.

        Returns None when it has other files. Raises OSError.
        """
        if set(self._files.names(self._path_of(topic_partition))) - {partition_directory.METADATA_FILE_NAME}:
            return None
        return DirectoryDeletion(self._files, self._set_aside(topic_partition, DirectoryKind.DELETED, unique), 0)

    def mark_as_stray(self, topic_partition: TopicPartition, unique: Uuid) -> str:
        """Rename the directory of a log whose topic is not in the metadata, and keep it; returns the new path."""
        return self._set_aside(topic_partition, DirectoryKind.STRAY, unique)

    def interrupted_moves(self) -> list[tuple[TopicPartition, Uuid]]:
        """Future logs that were being moved here when the last process ended, with their topic ids where known.

        Their directories are among the `leftovers`.
        """
        found = []
        for name in sorted(self._files.names(self.path)):
            parsed = partition_directory.parse_name(name)
            if parsed is not None and parsed.kind is DirectoryKind.FUTURE:
                topic_id = partition_directory.read_metadata(self._files, f"{self.path}/{name}")
                found.append((parsed.topic_partition, topic_id))
        return found

    def leftovers(self) -> list[DirectoryDeletion]:
        """Directories left by the last process: deleted logs not yet removed, and unfinished future logs."""
        removals = []
        for name in self._files.names(self.path):
            parsed = partition_directory.parse_name(name)
            if parsed is not None and parsed.kind in (DirectoryKind.DELETED, DirectoryKind.FUTURE):
                removals.append(DirectoryDeletion(self._files, f"{self.path}/{name}", 0))
        return removals

    def _write_metadata(self, topic_partition: TopicPartition, topic_id: Uuid) -> SmallFile:
        """Write ``partition.metadata`` unless it is correct; returns it as a file that is still to be synced."""
        directory = self._path_of(topic_partition)
        path = f"{directory}/{partition_directory.METADATA_FILE_NAME}"
        if not self._files.exists(path) or partition_directory.read_metadata(self._files, directory) != topic_id:
            write_file(self._files, path, partition_directory.encode_metadata(topic_id), sync=False)
        return SmallFile(path, None)

    def _path_of(self, topic_partition: TopicPartition) -> str:
        return f"{self.path}/{partition_directory.directory_name(topic_partition)}"

    def _set_aside(self, topic_partition: TopicPartition, kind: DirectoryKind, unique: Uuid) -> str:
        log = self.logs.pop(topic_partition, None)
        self._unopened.pop(topic_partition, None)
        if log is not None:
            log.mark_offline("it was deleted", is_wanted=True)
            log.close_files()
        target = f"{self.path}/{partition_directory.renamed(topic_partition, kind, unique)}"
        self._files.rename(self._path_of(topic_partition), target)
        return target

    # Checkpoints and other files of the whole directory.

    def checkpoint_job(self) -> Callable[[], None]:
        """Take recovery points and log start offsets now; the returned job writes them, on any thread."""
        self._check_online()
        return self._checkpoint_job()

    def securing_job(self, log: LogState, offset: int) -> Callable[[], None] | None:
        assert log.recovery_point >= offset
        is_secure = self._checkpoints.recovery_points.get(log.topic_partition, 0) >= offset
        return None if is_secure else self._checkpoint_job()

    def _limit_of(self, key: TopicPartition, log: LogState) -> int:
        """The highest offset that the checkpoints may have for a log: below its end offset while it is about to be
        truncated."""
        limit, end = self._cutting.get(key, (0, None))
        if end is not None and end == _end_of(log):
            return limit
        self._cutting.pop(key, None)
        return log.end_offset

    def _checkpoint_job(self) -> Callable[[], None]:
        known = self._checkpoints
        recovery_points = {key: known.recovery_points[key] for key in self._unopened if key in known.recovery_points}
        log_starts = {key: known.log_start_offsets[key] for key in self._unopened if key in known.log_start_offsets}
        for key, log in self.logs.items():
            limit = self._limit_of(key, log)
            recovery_points[key] = min(log.recovery_point, limit)
            if log.log_start_offset > 0:
                log_starts[key] = min(log.log_start_offset, limit)
        return self._checkpoints.job(recovery_points, log_starts)

    def raising_job(self, log: LogState) -> Callable[[], None] | None:
        key = log.topic_partition
        if self.logs.get(key) is not log or self._checkpoints.recovery_points.get(key, 0) >= log.log_start_offset:
            return None
        return self._checkpoint_job()

    def lowering_job(self, log: LogState, offset: int) -> Callable[[], None] | None:
        key = log.topic_partition
        # Truncation removes whole batches: the new end may be any batch boundary in the segment that contains the
        # offset.
        limit = min(offset, log.base_offsets[log.segment_index_for(offset)])
        is_lower = self._checkpoints.may_exceed(key, offset if limit == offset else offset - 1)
        if not is_lower:
            return None
        # Valid until the log's end changes, which the truncation does.
        self._cutting[key] = (limit, _end_of(log))
        return self._checkpoint_job()

    def creating_job(self, topic_partition: TopicPartition, start_offset: int = 0) -> Callable[[], None] | None:
        """The job to run before a log of this name is created, or None; `create_log` runs it when the caller has not.

        The checkpoints may still have entries of a deleted log of that name, which after a crash would be applied to
        the new one. The job syncs and raises OSError.
        """
        self._check_online()
        self._unopened.pop(topic_partition, None)
        return self._checkpoint_job() if self._checkpoints.may_exceed(topic_partition, start_offset) else None

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        """Read the high watermark checkpoint; empty when it is missing or corrupt: high watermarks then start at log
        start.
        """
        try:
            return checkpoints.read_offsets(self._files, self.path, checkpoints.HIGH_WATERMARKS)
        except CheckpointError as error:
            logger.error("ignoring the high watermark checkpoint of %s: %s", self.path, error)
            return {}

    def write_high_watermarks(self, offsets: dict[TopicPartition, int]) -> None:
        """Replace the high watermark checkpoint. It syncs, so it runs as a job."""
        checkpoints.write_offsets(self._files, self.path, checkpoints.HIGH_WATERMARKS, offsets)

    def _take_clean_shutdown_marker(self) -> tuple[bool, int]:
        path = f"{self.path}/{CLEAN_SHUTDOWN_FILE_NAME}"
        content = read_file(self._files, path, 4096)
        if content is None:
            return False, NO_BROKER_EPOCH
        self._files.unlink(path)
        self._files.sync_directory(self.path)
        try:
            broker_epoch = int(json.loads(content)["brokerEpoch"])
        except (ValueError, KeyError, TypeError):
            broker_epoch = NO_BROKER_EPOCH
        return True, broker_epoch

    def _remove_temporary_files(self) -> None:
        for name in self._files.names(self.path):
            if name.endswith(TEMPORARY_SUFFIX) and not self._files.is_directory(f"{self.path}/{name}"):
                self._files.unlink(f"{self.path}/{name}")

    # Closing.

    def close(self, *, broker_epoch: int = NO_BROKER_EPOCH) -> bool:
        """Close every log and unlock the directory. True when all logs were closed cleanly, so the next start skips
        recovery.
        """
        is_clean = self.offline_reason is None
        try:
            for future in self.futures.values():
                future.close_files()
            for log in self.logs.values():
                is_clean = self._close_log(log) and is_clean
            if self.offline_reason is None:
                self._checkpoint_job()()
                if is_clean:
                    marker = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
                    replace_file(self._files, f"{self.path}/{CLEAN_SHUTDOWN_FILE_NAME}", marker.encode("ascii"))
        except OSError as error:
            logger.error("%s could not be closed cleanly: %s", self.path, error)
            is_clean = False
        finally:
            self._lock.release()
        return is_clean

    def abandon(self) -> None:
        """Close files and release the lock without a clean-shutdown marker: the next start recovers. For a failed
        start.
        """
        for log in (*self.logs.values(), *self.futures.values()):
            log.close_files()
        self._lock.release()

    @staticmethod
    def _close_log(log: Log) -> bool:
        try:
            log.close_cleanly()
        except (KafkaStorageError, OSError) as error:
            logger.error("%s could not be closed cleanly: %s", log.topic_partition, error)
            log.close_files()
            return False
        return not log.is_offline

    def went_offline(self, log: LogState) -> None:
        self.offline_count += 1
        if self.on_damage is not None and log.damaged_offset >= 0:
            self.on_damage()

    def wants_flush(self, log: LogState) -> None:
        if self.on_flush_wanted is not None:
            assert isinstance(log, Log)
            self.on_flush_wanted(log)

    def failed(self, reason: str) -> None:
        if self.offline_reason is None:
            self.offline_reason = reason
            logger.critical("log directory %s is offline: %s", self.path, reason)
            for log in self.logs.values():
                log.mark_offline(f"log directory {self.path} is offline: {reason}")
            self._on_failure(reason)

    def check_present(self, is_present: bool) -> None:
        """Take the directory offline if its ``meta_path`` no longer exists; raises `KafkaStorageError` in that case.

        When a disk is unmounted, open files still work, and new files would be created on the disk below.
        """
        if self.meta is not None and not is_present:
            self.failed(f"{self.meta_path} no longer exists: the disk was unmounted, or the directory moved or removed")
            self._check_online()

    def _check_online(self) -> None:
        if self.offline_reason is not None:
            raise KafkaStorageError(f"log directory {self.path} is offline: {self.offline_reason}")
