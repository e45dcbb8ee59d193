"""A bounded cache of open files: logs may have thousands of segments, a process only so many file descriptors.

Each segment has one `CachedFile`, which opens its file on demand and may be evicted to make room. A *lease* keeps it
open: code that uses a file beyond the current call (a reply that is being sent, a flush on a thread) takes a lease and
releases it exactly once. Eviction, retention, truncation and closing never close a leased file; the last release
closes a retired one. Eviction is second-chance (clock): a file used since the last pass is spared once.

When more files are leased than the limit allows, the cache exceeds its limit rather than fail, and shrinks as they are
released. Only a refusal of the operating system (EMFILE) is an error, and even then all idle files are closed and the
open is retried.
"""

from __future__ import annotations

import errno
from collections import deque

from millbeck.kernel.environment import File, Files, OpenMode


class CachedFile:
    """One path whose file may be open. ``file`` is None while it is closed; use `get` or `lease`."""

    __slots__ = ("_cache", "file", "is_retired", "leases", "mode", "path", "was_used")

    def __init__(self, cache: FileCache, path: str, mode: OpenMode) -> None:
        self._cache = cache
        self.path = path
        self.mode = mode
        self.file: File | None = None
        self.leases = 0
        self.was_used = False
        self.is_retired = False

    def get(self) -> File:
        """The open file, for use within the current call only."""
        self.was_used = True
        return self.file or self._cache.open(self)

    def lease(self) -> File:
        """The open file, kept open until `release`."""
        self.was_used = True
        file = self.file or self._cache.open(self)
        self.leases += 1
        return file

    def release(self) -> None:
        assert self.leases > 0, f"{self.path} was released more often than leased"
        self.leases -= 1
        if not self.leases and (self.is_retired or self._cache.is_over_limit):
            self._cache.close(self)

    def retire(self) -> None:
        """Close the file as soon as it has no leases, because it is no longer part of its log."""
        self.is_retired = True
        if not self.leases:
            self._cache.close(self)


class FileCache:
    __slots__ = ("_files", "_open", "limit")

    def __init__(self, files: Files, limit: int) -> None:
        assert limit > 0
        self._files = files
        self._open: deque[CachedFile] = deque()
        self.limit = limit

    @property
    def open_count(self) -> int:
        return len(self._open)

    @property
    def is_over_limit(self) -> bool:
        return len(self._open) > self.limit

    def entry(self, path: str, mode: OpenMode) -> CachedFile:
        return CachedFile(self, path, mode)

    def open(self, entry: CachedFile) -> File:
        assert entry.file is None, f"{entry.path} is open already"
        if len(self._open) >= self.limit:
            self._make_room()
        try:
            file = self._files.open(entry.path, entry.mode)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self.close_idle()
            file = self._files.open(entry.path, entry.mode)
        entry.file = file
        self._open.append(entry)
        return file

    def close(self, entry: CachedFile) -> None:
        """Close a file without leases; do nothing when it is not open."""
        if entry.file is not None:
            assert not entry.leases, f"{entry.path} is leased and cannot be closed"
            self._open.remove(entry)
            self._close_file(entry)

    def close_idle(self) -> None:
        """Close every file without leases."""
        for entry in [entry for entry in self._open if not entry.leases]:
            self.close(entry)

    def _make_room(self) -> None:
        # The clock hand passes each file at most twice: first it clears ``was_used``, then it evicts.
        for _ in range(2 * len(self._open)):
            entry = self._open[0]
            if entry.leases or entry.was_used:
                entry.was_used = False
                self._open.rotate(-1)
                continue
            self._open.popleft()
            self._close_file(entry)
            if len(self._open) < self.limit:
                return

    @staticmethod
    def _close_file(entry: CachedFile) -> None:
        file, entry.file = entry.file, None
        assert file is not None
        file.close()
