"""Files on disk, addressed by position.

A `HostFile` owns one descriptor. Writes are repeated after short counts until all bytes are in the file or the kernel
returns an error (a full file system may answer the first call with a short count and no error). ``sync`` is fdatasync
on Linux and F_FULLFSYNC where the plain call only reaches the drive's cache (macOS).
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
from collections.abc import Sequence

from millbeck.host import dirty_pages, linux
from millbeck.kernel.environment import Bytes, OpenMode

_BUFFERS_PER_CALL_MAX = 1024  # IOV_MAX of Linux and macOS
_FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


class HostFile:
    __slots__ = ("_can_probe", "_descriptor", "_is_linux", "_is_memory", "path")

    def __init__(self, path: str, descriptor: int, *, is_linux: bool) -> None:
        self.path = path
        self._descriptor = descriptor
        self._is_linux = is_linux
        self._can_probe = is_linux
        self._is_memory = False

    @property
    def reads_nowait(self) -> bool:
        return self._can_probe or self._is_memory

    def read(self, size: int, position: int) -> bytes:
        try:
            chunk = os.pread(self._descriptor, size, position)
            if len(chunk) == size:
                return chunk
            chunks = []
            while chunk:
                chunks.append(chunk)
                size -= len(chunk)
                position += len(chunk)
                if size == 0:
                    break
                chunk = os.pread(self._descriptor, size, position)
        except OSError as error:
            self._name(error)
            raise
        return b"".join(chunks)

    def _name(self, error: OSError) -> None:
        """Add the path to an error: calls by descriptor do not report it."""
        if error.filename is None:
            error.filename = self.path

    def read_counted(self, size: int, position: int) -> tuple[bytes, int]:
        before = linux.bytes_from_disk() if self._is_linux else -1
        chunk = self.read(size, position)
        return chunk, len(chunk) if before < 0 else linux.bytes_from_disk() - before

    def read_nowait(self, size: int, position: int) -> Bytes | None:
        if self._can_probe:
            try:
                return linux.read_from_page_cache(self._descriptor, size, position)
            except OSError as error:
                if not linux.is_nowait_unsupported(error):
                    raise
                self._can_probe = False
                self._is_memory = linux.is_memory_file_system(self._descriptor)
        if self._is_memory:
            return self.read(size, position)
        return None

    def write(self, buffers: Sequence[Bytes], position: int) -> None:
        try:
            if len(buffers) == 1:
                rest = memoryview(buffers[0])
                count = os.pwrite(self._descriptor, rest, position)
                if count != len(rest):
                    self._write_rest([rest], count, position)
            elif len(buffers) <= _BUFFERS_PER_CALL_MAX:
                self._write_some(buffers, position)
            else:
                for start in range(0, len(buffers), _BUFFERS_PER_CALL_MAX):
                    some = buffers[start : start + _BUFFERS_PER_CALL_MAX]
                    self._write_some(some, position)
                    position += sum(map(len, some))
        except OSError as error:
            self._name(error)
            raise

    def _write_some(self, buffers: Sequence[Bytes], position: int) -> None:
        if not buffers:
            return
        if not self._is_linux:
            # pwritev is missing in older macOS versions; one copy is cheaper than a call per buffer.
            self.write([b"".join(buffers)], position)
            return
        count = os.pwritev(self._descriptor, buffers, position)
        size = 0
        for buffer in buffers:
            size += len(buffer)
        if count != size:
            self._write_rest(buffers, count, position)

    def _write_rest(self, buffers: Sequence[Bytes], written: int, position: int) -> None:
        rest = memoryview(b"".join(buffers))[written:]
        position += written
        while rest:
            count = os.pwrite(self._descriptor, rest, position)
            if count == 0:
                raise OSError(errno.EIO, "the kernel wrote 0 bytes without an error", self.path)
            rest = rest[count:]
            position += count

    def allocate(self, size: int) -> None:
        try:
            if os.fstat(self._descriptor).st_size >= size:
                return
            if self._is_linux:
                os.posix_fallocate(self._descriptor, 0, size)
            else:
                os.ftruncate(self._descriptor, size)
        except OSError as error:
            self._name(error)
            raise

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            self._name(error)
            raise

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def sync(self) -> None:
        if self._descriptor < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        try:
            if self._is_linux:
                os.fdatasync(self._descriptor)
            else:
                _sync_fully(self._descriptor)
        except OSError as error:
            self._name(error)
            raise

    def start_writeback(self, position: int, size: int) -> None:
        if self._is_linux and dirty_pages.of_this_machine.should_write_back():
            linux.start_writeback(self._descriptor, position, size)

    def descriptor(self) -> int | None:
        return self._descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class HostFileLock:
    """A file lock that is held as long as its descriptor is open, so it is released when the process dies."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class HostFiles:
    def __init__(self, *, is_linux: bool) -> None:
        self._is_linux = is_linux

    def open(self, path: str, mode: OpenMode) -> HostFile:
        flags = os.O_RDONLY if mode is OpenMode.READ else os.O_RDWR | os.O_CREAT
        permissions = 0o600 if mode is OpenMode.WRITE_PRIVATE else 0o644
        return HostFile(path, os.open(path, flags | os.O_CLOEXEC, permissions), is_linux=self._is_linux)

    def names(self, directory: str) -> list[str]:
        return sorted(os.listdir(directory))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if self._is_linux:
                os.fsync(descriptor)
            else:
                _sync_fully(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> HostFileLock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return HostFileLock(descriptor)

    def free_bytes(self, path: str) -> int:
        state = os.statvfs(path)
        return state.f_bavail * state.f_frsize

    def total_bytes(self, path: str) -> int:
        state = os.statvfs(path)
        return state.f_blocks * state.f_frsize

    def open_files_limit(self) -> int:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return limit if limit != resource.RLIM_INFINITY else 1 << 30


def _sync_fully(descriptor: int) -> None:
    if _FULL_FSYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_FSYNC)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
    os.fsync(descriptor)
