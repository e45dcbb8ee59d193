"""One entry of ``log.dirs``: many logs, and the few files that speak for all of them.

It is locked while in use (``.lock``). The clean-shutdown marker is read and removed at once, before anything is
written, and comes back only when every log was closed cleanly. Checkpoints of recovery points and log starts are
replaced as a whole; an entry on disk never claims more than is true of the log that has that name now, which is why
creating and truncating a log may rewrite them first.

A failure that makes the disk untrustworthy (a sync that failed, a write that could not be undone) takes all logs of the
directory offline; ``on_failure`` tells the node.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

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
from millbeck.storage.file_cache import FileCache
from millbeck.storage.flush import SmallFile
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.log_environment import LogEnvironment
from millbeck.storage.mending import Mended, MendingJob
from millbeck.storage.partition_directory import Kind
from millbeck.storage.properties import MetaProperties, read_meta_properties

logger = logging.getLogger(__name__)

LOCK_FILE_NAME = ".lock"
CLEAN_SHUTDOWN_FILE_NAME = ".kafka_cleanshutdown"
NO_BROKER_EPOCH = -1

_End = tuple[Log, int, int]
"""Where a log ends, and after how many cuts: it may come to the same offset again with other batches."""


def _end_of(log: Log) -> _End:
    return log, log.durability.generation, log.end_offset


class DirectoryLocked(Exception):
    """Another process uses this log directory."""


class TreeRemoval:
    """A deleted log's directory; `run` removes it, off the loop, once ``delay_ms`` has passed."""

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
        """Lock the directory and read what it says of itself.

        Raises `DirectoryLocked`, `MetaPropertiesError` or OSError. The directory is created when it does not exist.
        """
        self.path = path
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        """Logs on their way here from another directory."""
        self.offline_reason: str | None = None
        self.offline_count = 0
        """How many logs have gone offline, wanted or not; it only rises."""
        self.on_flush_wanted: Callable[[Log], None] | None = None
        """Told of a log that takes no writes until it is flushed."""
        self._files = files
        self._on_failure = on_failure
        self._environment = LogEnvironment(files, cache, index_cache, jitter_below, self)
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
            # Logs that are still to be opened: what the checkpoints say of them stays as it is.
            self._unopened = dict.fromkeys([*self._checkpoints.recovery_points, *self._checkpoints.log_start_offsets])
            self._cutting: dict[TopicPartition, tuple[int, _End]] = {}
            """Logs that are about to be cut: what may be claimed of them, as long as they end where they do."""
        except BaseException:
            self._lock.release()
            raise

    # Logs.

    def partitions(self) -> list[tuple[TopicPartition, Uuid]]:
        """The logs that are there, with the topic id each was created for (zero when unknown)."""
        found = []
        for name in self._files.names(self.path):
            parsed = partition_directory.parse_name(name)
            if parsed is not None and parsed.kind is Kind.LOG and self._files.is_directory(f"{self.path}/{name}"):
                topic_id = partition_directory.read_metadata(self._files, f"{self.path}/{name}")
                found.append((parsed.topic_partition, topic_id))
        return found

    def open_log(self, topic_partition: TopicPartition, topic_id: Uuid, config: LogConfig, *, now_ms: int) -> Log:
        """Open a log that is there. Raises OSError; a damaged log is returned offline."""
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
            # It may have been created just before the crash, with nothing of it synced yet.
            log.durability.note_new(self._write_metadata(topic_partition, topic_id))
        self._add(log)
        return log

    def create_log(
        self, topic_partition: TopicPartition, topic_id: Uuid, config: LogConfig, *, now_ms: int, start_offset: int = 0
    ) -> Log:
        """Create an empty log. Its directory becomes durable with its first flush. Raises OSError."""
        assert topic_partition not in self.logs, f"{topic_partition} is open already"
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

    def mending_job(self, damaged: Log, *, now_ms: int) -> MendingJob:
        """For a thread: the files of a damaged log without its first bad batch and what came after, which another
        replica has. What it returns is for `finish_mending`; until then nobody else may touch the log's files.

        First run what `lowering_job` returns for ``damaged_offset``, until it returns None. Raises OSError.
        """
        assert self.logs.get(damaged.topic_partition) is damaged, f"{damaged} is not here"
        self._check_online()
        damaged.close_files()
        return MendingJob(self._files, damaged, now_ms)

    def finish_mending(self, damaged: Log, mended: Mended, *, now_ms: int) -> Log:
        """The log opened anew, or the damaged one, when it is damaged further back, too. Raises OSError."""
        key = damaged.topic_partition
        assert self.logs.get(key) is damaged, f"{damaged} is not here"
        self._check_online()
        if mended.damaged_offset >= 0:
            damaged.damaged_offset = mended.damaged_offset
            return damaged
        log = loading.open_log(
            self._environment,
            self._path_of(key),
            key,
            damaged.topic_id,
            damaged.config,
            now_ms=now_ms,
            recovery_point=mended.end_offset,
            log_start_offset=damaged.log_start_offset,
            had_clean_shutdown=True,
        )
        self.offline_count -= 1
        self._add(log)
        return log

    # Logs that move here from another directory.

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
        """An empty log that will take the place of one in another directory. Raises OSError."""
        self._check_online()
        path = f"{self.path}/{partition_directory.renamed(topic_partition, Kind.FUTURE, unique)}"
        self._files.make_directory(path)
        metadata = f"{path}/{partition_directory.METADATA_FILE_NAME}"
        write_file(self._files, metadata, partition_directory.encode_metadata(topic_id), sync=False)
        log = loading.create_log(
            self._environment, path, topic_partition, topic_id, config, now_ms=now_ms, start_offset=start_offset
        )
        log.durability.note_new(SmallFile(metadata, None))
        self.futures[topic_partition] = log
        return log

    def drop_future(self, future: Log) -> TreeRemoval:
        del self.futures[future.topic_partition]
        future.go_offline("it was not needed any more", is_wanted=True)
        self.offline_count -= 1
        future.close_files()
        return TreeRemoval(self._files, future.directory, 0)

    def adopt_future(self, future: Log) -> None:
        """The future log is the log from now on; no flush of it may be under way. Raises OSError."""
        key = future.topic_partition
        assert key not in self.logs, f"{key} is open already"
        path = self._path_of(key)
        self._files.rename(future.directory, path)
        future.relocate(path)
        del self.futures[key]
        future.durability.note_new(SmallFile(f"{path}/{partition_directory.METADATA_FILE_NAME}", None))
        self._add(future)

    def all_opened(self) -> None:
        """Every log that is to be served has been opened: the checkpoints forget the others."""
        self._unopened.clear()

    def delete_log(self, topic_partition: TopicPartition, unique: Uuid) -> TreeRemoval:
        """Take a log out of service; the returned job removes its files later. Raises OSError."""
        delay_ms = self.logs[topic_partition].config.file_delete_delay_ms
        return TreeRemoval(self._files, self._set_aside(topic_partition, Kind.DELETED, unique), delay_ms)

    def discard_unfinished(self, topic_partition: TopicPartition, unique: Uuid) -> TreeRemoval | None:
        """What is left when a process died between the first two steps of `create_log`: a directory with nothing in it
        but perhaps a piece of the file that says whose it is. None when there is more. Raises OSError.
        """
        if set(self._files.names(self._path_of(topic_partition))) - {partition_directory.METADATA_FILE_NAME}:
            return None
        return TreeRemoval(self._files, self._set_aside(topic_partition, Kind.DELETED, unique), 0)

    def set_aside_as_stray(self, topic_partition: TopicPartition, unique: Uuid) -> str:
        """Keep, under another name, a log whose topic the metadata does not have; returns where it is now."""
        return self._set_aside(topic_partition, Kind.STRAY, unique)

    def interrupted_moves(self) -> list[tuple[TopicPartition, Uuid]]:
        """Logs that were on their way here when the last process ended, with their topics as far as that is known.

        Their files are among the `leftovers`.
        """
        found = []
        for name in sorted(self._files.names(self.path)):
            parsed = partition_directory.parse_name(name)
            if parsed is not None and parsed.kind is Kind.FUTURE:
                topic_id = partition_directory.read_metadata(self._files, f"{self.path}/{name}")
                found.append((parsed.topic_partition, topic_id))
        return found

    def leftovers(self) -> list[TreeRemoval]:
        """Directories of logs that were deleted before the last stop and not removed yet, or had begun to move here."""
        removals = []
        for name in self._files.names(self.path):
            parsed = partition_directory.parse_name(name)
            if parsed is not None and parsed.kind in (Kind.DELETED, Kind.FUTURE):
                removals.append(TreeRemoval(self._files, f"{self.path}/{name}", 0))
        return removals

    def _write_metadata(self, topic_partition: TopicPartition, topic_id: Uuid) -> SmallFile:
        """Write ``partition.metadata`` unless it is right; returns it as a file that is still to be synced."""
        directory = self._path_of(topic_partition)
        path = f"{directory}/{partition_directory.METADATA_FILE_NAME}"
        if not self._files.exists(path) or partition_directory.read_metadata(self._files, directory) != topic_id:
            write_file(self._files, path, partition_directory.encode_metadata(topic_id), sync=False)
        return SmallFile(path, None)

    def _path_of(self, topic_partition: TopicPartition) -> str:
        return f"{self.path}/{partition_directory.directory_name(topic_partition)}"

    def _set_aside(self, topic_partition: TopicPartition, kind: Kind, unique: Uuid) -> str:
        log = self.logs.pop(topic_partition, None)
        self._unopened.pop(topic_partition, None)
        if log is not None:
            log.go_offline("it was deleted", is_wanted=True)
            log.close_files()
        target = f"{self.path}/{partition_directory.renamed(topic_partition, kind, unique)}"
        self._files.rename(self._path_of(topic_partition), target)
        return target

    # Files for all logs.

    def checkpoint_job(self) -> Callable[[], None]:
        """Note recovery points and log starts now; the returned job writes them, on any thread."""
        self._check_online()
        return self._checkpoint_job()

    def securing_job(self, log: Log, offset: int) -> Callable[[], None] | None:
        assert log.recovery_point >= offset
        is_secure = self._checkpoints.recovery_points.get(log.topic_partition, 0) >= offset
        return None if is_secure else self._checkpoint_job()

    def _limit_of(self, key: TopicPartition, log: Log) -> int:
        """What may be claimed of a log: less than its end while it is about to be cut, whoever asks for the job."""
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

    def raising_job(self, log: Log) -> Callable[[], None] | None:
        key = log.topic_partition
        if self.logs.get(key) is not log or self._checkpoints.recovery_points.get(key, 0) >= log.log_start_offset:
            return None
        return self._checkpoint_job()

    def lowering_job(self, log: Log, offset: int) -> Callable[[], None] | None:
        key = log.topic_partition
        # Whole batches go: the new end may be any boundary of the segment that holds the offset.
        limit = min(offset, log.base_offsets[log.segment_index_for(offset)])
        is_lower = self._checkpoints.may_claim(key, offset if limit == offset else offset - 1)
        if not is_lower:
            return None
        # It holds until the log ends elsewhere, which it does when it was cut.
        self._cutting[key] = (limit, _end_of(log))
        return self._checkpoint_job()

    def creating_job(self, topic_partition: TopicPartition, start_offset: int = 0) -> Callable[[], None] | None:
        """What must have run before a log of this name is created; `create_log` runs it itself where it has not.

        The checkpoints may still speak of a deleted log of that name: after a crash that would be taken for the new
        one's. The job syncs and raises OSError."""
        self._check_online()
        self._unopened.pop(topic_partition, None)
        return self._checkpoint_job() if self._checkpoints.may_claim(topic_partition, start_offset) else None

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        """Empty when there are none yet or the file is damaged: high watermarks then start from the log starts."""
        try:
            return checkpoints.read_offsets(self._files, self.path, checkpoints.HIGH_WATERMARKS)
        except CheckpointError as error:
            logger.error("high watermarks of %s are not used: %s", self.path, error)
            return {}

    def write_high_watermarks(self, offsets: dict[TopicPartition, int]) -> None:
        """Syncs: a job."""
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

    # Ending.

    def close(self, *, broker_epoch: int = NO_BROKER_EPOCH) -> bool:
        """Close every log and unlock. True when all of it was clean, so that the next start need not recover."""
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
        """Let go of files and lock without a promise: the next start recovers. For a start that failed."""
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

    def went_offline(self, log: Log) -> None:
        self.offline_count += 1

    def wants_flush(self, log: Log) -> None:
        if self.on_flush_wanted is not None:
            self.on_flush_wanted(log)

    def failed(self, reason: str) -> None:
        if self.offline_reason is None:
            self.offline_reason = reason
            logger.critical("log directory %s is offline: %s", self.path, reason)
            for log in self.logs.values():
                log.go_offline(f"log directory {self.path} is offline: {reason}")
            self._on_failure(reason)

    def _check_online(self) -> None:
        if self.offline_reason is not None:
            raise KafkaStorageError(f"log directory {self.path} is offline: {self.offline_reason}")
