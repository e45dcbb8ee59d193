"""A process's view of its machine's simulated disk; implements the kernel's ``Files`` and ``File``.

Calls act at once on the page cache. When the process dies its view is detached: every further call fails, so that
code which is still referenced cannot touch a disk that belongs to the next process.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING

from millbeck.kernel.environment import Bytes, OpenMode
from millbeck.simulation.environment.directory import Directory, Entry, change_entries
from millbeck.simulation.environment.disk_faults import DiskCall, fault, names_of
from millbeck.simulation.environment.inode import Inode

if TYPE_CHECKING:
    from millbeck.simulation.environment.disk import SimDisk


class SimFile:
    __slots__ = ("_disk", "_files", "_inode", "_is_open", "_is_writable", "path")

    def __init__(self, files: SimFiles, disk: SimDisk, path: str, inode: Inode, *, is_writable: bool) -> None:
        self.path = path
        self._files = files
        self._disk = disk
        self._inode = inode
        self._is_open = True
        self._is_writable = is_writable
        inode.open_count += 1
        files.open_files[self] = None

    @property
    def reads_nowait(self) -> bool:
        return True

    def read(self, size: int, position: int) -> bytes:
        self._check_open()
        self._disk.check_fault(DiskCall.READ, self.path)
        return bytes(memoryview(self._inode.content)[position : position + size])

    def read_counted(self, size: int, position: int) -> tuple[bytes, int]:
        chunk = self.read(size, position)
        return chunk, len(chunk)

    def read_nowait(self, size: int, position: int) -> bytes | None:
        disk = self._disk
        if disk.faults.cold_read and disk.generator.random() < disk.faults.cold_read:
            self._check_open()
            return None
        return self.read(size, position)

    def write(self, buffers: Sequence[Bytes], position: int) -> None:
        self._check_writable()
        disk = self._disk
        data = b"".join(buffers)
        end = position + len(data)
        try:
            disk.check_fault(DiskCall.WRITE, self.path)
            growth = max(0, end - len(self._inode.content))
            if disk.used_bytes + growth > disk.faults.capacity_bytes:
                raise fault(errno.ENOSPC, self.path)
        except OSError:
            # Part of it may be in the file, never more than fits.
            room = disk.faults.capacity_bytes - disk.used_bytes + len(self._inode.content) - position
            landed = min(disk.generator.randrange(len(data) + 1), max(0, room))
            self._put(data[:landed], position)
            raise
        self._put(data, position)

    def _put(self, data: bytes, position: int) -> None:
        if not data:
            return
        disk = self._disk
        disk.used_bytes += self._inode.write(data, position)
        self._inode.modified_ms = disk.now_ms()
        if disk.trace is not None:
            disk.trace("write", self.path, position, data)

    def allocate(self, size: int) -> None:
        self._check_writable()
        growth = size - len(self._inode.content)
        if growth <= 0:
            return
        if self._disk.used_bytes + growth > self._disk.faults.capacity_bytes:
            raise fault(errno.ENOSPC, self.path)
        self._resize(size)

    def truncate(self, size: int) -> None:
        self._check_writable()
        self._disk.check_fault(DiskCall.WRITE, self.path)
        self._resize(size)

    def _resize(self, size: int) -> None:
        disk = self._disk
        disk.used_bytes += self._inode.resize(size)
        self._inode.modified_ms = disk.now_ms()
        if disk.trace is not None:
            disk.trace("resize", self.path, size)

    def size(self) -> int:
        self._check_open()
        return len(self._inode.content)

    def sync(self) -> None:
        self._check_open()
        disk = self._disk
        disk.spend(disk.faults.sync_cost_s)
        try:
            disk.check_fault(DiskCall.SYNC, self.path)
        except OSError:
            self._inode.fail_sync()
            raise
        self._inode.sync()
        if disk.trace is not None:
            disk.trace("sync", self.path)

    def start_writeback(self, position: int, size: int) -> None:
        self._check_open()

    def descriptor(self) -> int | None:
        return None

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            del self._files.open_files[self]
            self._inode.open_count -= 1
            self._disk.release_if_unlinked(self._inode)

    def _check_open(self) -> None:
        if not self._is_open:
            raise fault(errno.EBADF, self.path)

    def _check_writable(self) -> None:
        if not self._is_open or not self._is_writable:
            raise fault(errno.EBADF, self.path)


class SimFileLock:
    __slots__ = ("_disk", "_path")

    def __init__(self, disk: SimDisk, path: str) -> None:
        self._disk = disk
        self._path: str | None = path

    def release(self) -> None:
        path, self._path = self._path, None
        if path is not None:
            self._disk.locks.pop(path, None)


class SimFiles:
    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk
        self.is_detached = False
        self.open_files: dict[SimFile, None] = {}

    def detach(self) -> None:
        self.is_detached = True
        for file in list(self.open_files):
            file.close()

    def open(self, path: str, mode: OpenMode) -> SimFile:
        self._check_attached(path)
        disk = self._disk
        directory, name = disk.find_parent(path)
        entry = directory.entries.get(name)
        if entry is None:
            if mode is OpenMode.READ:
                raise fault(errno.ENOENT, path)
            if disk.used_bytes >= disk.faults.capacity_bytes:
                raise fault(errno.ENOSPC, path)
            entry = Inode(disk.now_ms())
            self._change([(directory, name, entry)], "create", path)
        if isinstance(entry, Directory):
            raise fault(errno.EISDIR, path)
        return SimFile(self, disk, path, entry, is_writable=mode is not OpenMode.READ)

    def names(self, directory: str) -> list[str]:
        self._check_attached(directory)
        return sorted(self._disk.find_directory(directory).entries)

    def exists(self, path: str) -> bool:
        return self._look(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._look(path), Directory)

    def _look(self, path: str) -> Entry | None:
        self._check_attached(path)
        try:
            return self._disk.find(path)
        except OSError:
            return None

    def size(self, path: str) -> int:
        self._check_attached(path)
        entry = self._disk.find(path)
        return len(entry.content) if isinstance(entry, Inode) else 0

    def modified_ms(self, path: str) -> int:
        self._check_attached(path)
        return self._disk.find(path).modified_ms

    def make_directory(self, path: str) -> None:
        self._check_attached(path)
        entry: Entry = self._disk.root
        for name in names_of(path):
            if not isinstance(entry, Directory):
                raise fault(errno.ENOTDIR, path)
            below = entry.entries.get(name)
            if below is None:
                below = Directory(self._disk.now_ms())
                self._change([(entry, name, below)], "make directory", path)
            entry = below
        if not isinstance(entry, Directory):
            raise fault(errno.EEXIST, path)

    def rename(self, old: str, new: str) -> None:
        self._check_attached(old)
        disk = self._disk
        old_directory, old_name = disk.find_parent(old)
        new_directory, new_name = disk.find_parent(new)
        entry = old_directory.entries.get(old_name)
        if entry is None:
            raise fault(errno.ENOENT, old)
        replaced = new_directory.entries.get(new_name)
        if replaced is entry:
            return
        if isinstance(replaced, Directory):
            if isinstance(entry, Inode):
                raise fault(errno.EISDIR, new)
            if replaced.entries:
                raise fault(errno.ENOTEMPTY, new)
        elif replaced is not None and isinstance(entry, Directory):
            raise fault(errno.ENOTDIR, new)
        self._change([(old_directory, old_name, None), (new_directory, new_name, entry)], "rename", old, new)
        if isinstance(replaced, Inode):
            disk.unlinked(replaced)

    def unlink(self, path: str) -> None:
        self._check_attached(path)
        directory, name = self._disk.find_parent(path)
        entry = directory.entries.get(name)
        if entry is None:
            raise fault(errno.ENOENT, path)
        if isinstance(entry, Directory):
            raise fault(errno.EISDIR, path)
        self._change([(directory, name, None)], "unlink", path)
        self._disk.unlinked(entry)

    def remove_tree(self, path: str) -> None:
        for name in self.names(path):
            below = f"{path}/{name}"
            if self.is_directory(below):
                self.remove_tree(below)
            else:
                self.unlink(below)
        directory, name = self._disk.find_parent(path)
        self._change([(directory, name, None)], "remove directory", path)

    def sync_directory(self, path: str) -> None:
        self._check_attached(path)
        disk = self._disk
        directory = disk.find_directory(path)
        disk.spend(disk.faults.sync_cost_s)
        disk.check_fault(DiskCall.SYNC, path)
        directory.sync()
        if disk.trace is not None:
            disk.trace("sync directory", path)

    def lock(self, path: str) -> SimFileLock:
        self.open(path, OpenMode.WRITE).close()
        key = "/".join(names_of(path))
        if key in self._disk.locks:
            raise fault(errno.EWOULDBLOCK, path)
        self._disk.locks[key] = self
        return SimFileLock(self._disk, key)

    def free_bytes(self, path: str) -> int:
        self._check_attached(path)
        self._disk.find(path)
        return max(0, self._disk.faults.capacity_bytes - self._disk.used_bytes)

    def open_files_limit(self) -> int:
        return 1 << 20

    def total_bytes(self, path: str) -> int:
        self._check_attached(path)
        self._disk.find(path)
        return self._disk.faults.capacity_bytes

    def _change(self, puts: list[tuple[Directory, str, Entry | None]], *description: str) -> None:
        change_entries(puts)
        now_ms = self._disk.now_ms()
        for directory, _, _ in puts:
            directory.modified_ms = now_ms
        if self._disk.trace is not None:
            self._disk.trace(*description)

    def _check_attached(self, path: str) -> None:
        if self.is_detached:
            raise fault(errno.EBADF, path)
