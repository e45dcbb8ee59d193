"""Repair of a damaged log on a thread: truncate it before its first corrupt batch.

Everything from the damaged segment on is read and verified, which may take seconds. The job therefore uses its own
files and indexes, apart from those of the event loop, and ends with a clean close: opening the log afterwards reads
almost nothing. The caller must ensure that nothing else touches the directory while the job runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from millbeck.kernel.environment import Files
from millbeck.kernel.ids import TopicPartition, Uuid
from millbeck.storage import loading
from millbeck.storage.config import LogConfig
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.log_environment import LogEnvironment
from millbeck.storage.log_state import LogState

_FILES_OPEN_MAX: Final = 16


class _NoLogHome:
    """Log home of a log that is in no `LogDirectory`: the checkpoints have been lowered before."""

    def securing_job(self, log: LogState, offset: int) -> Callable[[], None] | None:
        return None

    def failed(self, reason: str) -> None:
        raise OSError(reason)

    def went_offline(self, log: LogState) -> None:
        """Do nothing: the caller gets the result of `RepairJob.run`."""

    def wants_flush(self, log: LogState) -> None:
        """Do nothing: the log is closed at once."""

    def raising_job(self, log: LogState) -> Callable[[], None] | None:
        return None

    def lowering_job(self, log: LogState, offset: int) -> Callable[[], None] | None:
        return None


class RepairResult(NamedTuple):
    end_offset: int
    damaged_offset: int
    """Base offset of the segment with further, earlier damage; -1 when the log is intact now."""


class RepairJob:
    """Truncates a damaged log; created and finished by `LogDirectory`."""

    __slots__ = ("_damaged", "_files", "_now_ms")

    def __init__(self, files: Files, damaged: Log, now_ms: int) -> None:
        self._files = files
        self._damaged = damaged
        self._now_ms = now_ms

    def run(self) -> RepairResult:
        """Run the repair. Raises OSError or `KafkaStorageError`."""
        damaged = self._damaged
        return cut_and_close(
            self._files,
            damaged.directory,
            damaged.topic_partition,
            damaged.topic_id,
            damaged.config,
            now_ms=self._now_ms,
            recovery_point=damaged.damaged_offset,
            log_start_offset=damaged.log_start_offset,
        )


def cut_and_close(
    files: Files,
    directory: str,
    topic_partition: TopicPartition,
    topic_id: Uuid,
    config: LogConfig,
    *,
    now_ms: int,
    recovery_point: int,
    log_start_offset: int,
) -> RepairResult:
    """Truncate the log before its first corrupt batch at or after ``recovery_point``, rebuild its indexes, close it
    cleanly.

    Raises OSError or `KafkaStorageError`.
    """
    log = loading.open_log(
        detached_environment(files),
        directory,
        topic_partition,
        topic_id,
        config,
        now_ms=now_ms,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        had_clean_shutdown=False,
    )
    if log.is_offline:
        log.close_files()
        return RepairResult(log.end_offset, max(log.damaged_offset, 0))
    log.close_cleanly()
    return RepairResult(log.end_offset, -1)


def detached_environment(files: Files) -> LogEnvironment:
    """The environment of a log that no log directory has open."""
    return LogEnvironment(files, FileCache(files, _FILES_OPEN_MAX), IndexCache(), _no_jitter, _NoLogHome())


def _no_jitter(_: int) -> int:
    return 0
