"""Flushing a log in two halves: the event loop prepares a job, a thread runs it.

A `FlushJob` holds leased files and the bytes of small files; its ``run`` writes, trims and syncs and touches nothing
else. Order matters: all metadata of the data (indexes of sealed segments, producer snapshots, leader epochs, directory
entries) is durable before `Log.finish_flush` moves the recovery point past that data, so after a crash nothing below
the recovery point needs to be rebuilt.

Small files are written in place. A crash during the write leaves a torn one, which is detected when it is read, and
rebuilt from the batches.

Writing a small file may fail for lack of space: the job is then *deferred* and the next one tries again. A failed sync
is different: the kernel may have dropped the pages, and a second sync would wrongly succeed. It is never retried. Where
no descriptor is left for a directory, nothing has been synced yet: that defers the job.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from millbeck.kernel.environment import File, Files, OpenMode

NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})


class FlushOutcome(Enum):
    DONE = "done"
    DEFERRED = "deferred"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushResult:
    outcome: FlushOutcome
    error: OSError | None = None


class SmallFile:
    """A file that is written whole, in place; without content it already exists and is only synced."""

    __slots__ = ("content", "path")

    def __init__(self, path: str, content: bytes | None) -> None:
        self.path = path
        self.content = content


class FlushJob:
    """One flush of one log. ``target_offset`` is durable once `run` returns DONE.

    A job with a ``cut_version`` only makes a truncation durable, so it needs no disk space.
    """

    __slots__ = (
        "_files",
        "cut_version",
        "directories",
        "directory_version",
        "epoch_version",
        "generation",
        "releases",
        "saved_segments",
        "small_files",
        "snapshot_offsets",
        "syncs",
        "target_offset",
        "trims",
    )

    def __init__(self, files: Files, target_offset: int, generation: int) -> None:
        self._files = files
        self.target_offset = target_offset
        self.generation = generation
        self.small_files: list[tuple[File, bytes | None]] = []
        self.trims: list[tuple[File, int]] = []
        self.syncs: list[File] = []
        self.directories: list[str] = []
        self.releases: list[Callable[[], None]] = []
        self.saved_segments: list[int] = []
        self.snapshot_offsets: list[int] = []
        self.epoch_version = -1
        self.directory_version = -1
        self.cut_version: int | None = None

    def add_small_file(self, small: SmallFile) -> None:
        """Open the file now: when the thread runs, its path may belong to another log (deleted and recreated). Raises
        OSError.
        """
        file = self._files.open(small.path, OpenMode.WRITE)
        self.small_files.append((file, small.content))

    def abandon(self) -> None:
        """Release files and leases of a job that will not run."""
        for file, _ in self.small_files:
            file.close()
        for release in self.releases:
            release()

    def run(self) -> FlushResult:
        """Write and sync; called off the event loop. Never raises OSError."""
        syncing = False
        try:
            for file, size in self.trims:
                file.truncate(size)
            for file, content in self.small_files:
                if content is not None:
                    file.truncate(0)
                    file.write([content], 0)
            syncing = True
            for file, _ in self.small_files:
                file.sync()
            for file in self.syncs:
                file.sync()
            for directory in self.directories:
                self._files.sync_directory(directory)
        except OSError as error:
            has_failed = syncing and error.errno not in NO_DESCRIPTOR
            return FlushResult(outcome=FlushOutcome.FAILED if has_failed else FlushOutcome.DEFERRED, error=error)
        finally:
            for file, _ in self.small_files:
                file.close()
        return FlushResult(outcome=FlushOutcome.DONE)
