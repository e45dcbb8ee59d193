"""Making a damaged log whole again, on a thread: without its first bad batch, and what came after.

Everything from the damaged segment on is read and checked, which may take seconds. So it is done with files and
indexes of its own, apart from those that the loop uses, and ends as a clean stop does: what is opened afterwards reads
next to nothing. Whoever lets it run sees to it that nobody else touches the directory meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from millbeck.kernel.environment import Files
from millbeck.storage import loading
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.log_environment import LogEnvironment

_FILES_OPEN_MAX: Final = 16


class _Nowhere:
    """The home of a log that belongs to no directory: the checkpoints claim nothing of it by now."""

    def securing_job(self, log: Log, offset: int) -> Callable[[], None] | None:
        return None

    def failed(self, reason: str) -> None:
        raise OSError(reason)

    def went_offline(self, log: Log) -> None:
        """It is told by what `MendingJob.run` returns."""

    def wants_flush(self, log: Log) -> None:
        """It is closed at once."""

    def raising_job(self, log: Log) -> Callable[[], None] | None:
        return None

    def lowering_job(self, log: Log, offset: int) -> Callable[[], None] | None:
        return None


class Mended(NamedTuple):
    end_offset: int
    damaged_offset: int
    """Where the log is damaged as well, further back; -1 when it is whole now."""


class MendingJob:
    """Made and finished by the log's directory."""

    __slots__ = ("_damaged", "_files", "_now_ms")

    def __init__(self, files: Files, damaged: Log, now_ms: int) -> None:
        self._files = files
        self._damaged = damaged
        self._now_ms = now_ms

    def run(self) -> Mended:
        """Raises OSError, `KafkaStorageError`."""
        damaged = self._damaged
        log = loading.open_log(
            LogEnvironment(self._files, FileCache(self._files, _FILES_OPEN_MAX), IndexCache(), _no_jitter, _Nowhere()),
            damaged.directory,
            damaged.topic_partition,
            damaged.topic_id,
            damaged.config,
            now_ms=self._now_ms,
            recovery_point=damaged.damaged_offset,
            log_start_offset=damaged.log_start_offset,
            had_clean_shutdown=False,
        )
        if log.is_offline:
            log.close_files()
            return Mended(log.end_offset, max(log.damaged_offset, 0))
        log.close_cleanly()
        return Mended(log.end_offset, -1)


def _no_jitter(_: int) -> int:
    return 0
