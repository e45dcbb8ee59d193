"""A machine's simulated disk: a tree of files that can lose unsynced data, fill up, fail and corrupt bits.

It outlives the processes that use it. ``mount`` gives a process its `Files`; a process that is killed leaves the page
cache as it was, ``power_loss`` leaves what was synced and a random part of the rest. It needs no event loop, so a
property test of the log can use it alone:

    disk = SimDisk(random.Random(seed)); files = disk.mount(); ...; disk.power_loss(); files = disk.mount()
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass

from millbeck.simulation.environment import directory as directories
from millbeck.simulation.environment.directory import Directory, Entry
from millbeck.simulation.environment.disk_faults import DiskCall, DiskFaults, fault, names_of
from millbeck.simulation.environment.files import SimFiles
from millbeck.simulation.environment.inode import Inode


@dataclass(slots=True)
class _Planned:
    call: DiskCall
    path_part: str
    error: int
    count: int


class SimDisk:
    def __init__(
        self,
        generator: random.Random,
        *,
        now_ms: Callable[[], int] = lambda: 0,
        trace: Callable[..., None] | None = None,
        charge: Callable[[float], None] | None = None,
    ) -> None:
        """``trace`` is called with every change, ``charge`` with the virtual seconds that a call takes."""
        self.generator = generator
        self.faults = DiskFaults()
        self.now_ms = now_ms
        self.trace = trace
        self.charge = charge
        self.used_bytes = 0
        self.root = Directory(now_ms())
        self.locks: dict[str, SimFiles] = {}
        self._mounts: list[SimFiles] = []
        self._planned: list[_Planned] = []

    def mount(self) -> SimFiles:
        """Files for one process."""
        files = SimFiles(self)
        self._mounts.append(files)
        return files

    def unmount(self, files: SimFiles) -> None:
        """Close the files and release the locks of a process that ended; the page cache stays."""
        if files in self._mounts:
            self._mounts.remove(files)
        files.detach()
        for path in [path for path, holder in self.locks.items() if holder is files]:
            del self.locks[path]

    def power_loss(self, survival: float | None = None) -> None:
        """Lose unsynced changes; each is kept with probability ``survival``, which is drawn when None."""
        if survival is None:
            survival = self.generator.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        if self.trace is not None:
            self.trace("power loss", survival)
        for files in list(self._mounts):
            self.unmount(files)
        reached = directories.lose_power(self.root, self.generator, survival)
        self.used_bytes = 0
        for inode in reached:
            inode.lose_power(self.generator, survival)
            inode.open_count = 0
            inode.is_linked = True
            self.used_bytes += len(inode.content)

    def replace(self) -> None:
        """Replace the disk with an empty one. No process may be using it."""
        assert not self._mounts, "a process has the disk mounted"
        if self.trace is not None:
            self.trace("replaced")
        self.root = Directory(self.now_ms())
        self.used_bytes = 0
        self.locks.clear()
        self._planned.clear()

    def fail_next(self, call: DiskCall, *, path_part: str = "", error: int = errno.EIO, count: int = 1) -> None:
        """Let the next ``count`` calls of this kind on a path that contains ``path_part`` fail."""
        self._planned.append(_Planned(call, path_part, error, count))

    def forget_planned(self) -> None:
        """Cancel the failures requested with `fail_next`."""
        self._planned.clear()

    def rot(self, path: str, bit: int | None = None) -> None:
        """Flip one bit of a file, in the page cache and on the disk; if ``bit`` is None, a random one."""
        inode = self.find(path)
        if not isinstance(inode, Inode) or not inode.content:
            raise ValueError(f"nothing to corrupt in {path}")
        inode.rot(self.generator.randrange(len(inode.content) * 8) if bit is None else bit)

    def check_fault(self, call: DiskCall, path: str) -> None:
        """Raise when a planned or random fault hits this call."""
        for planned in self._planned:
            if planned.call is call and planned.path_part in path:
                planned.count -= 1
                if planned.count == 0:
                    self._planned.remove(planned)
                raise fault(planned.error, path)
        faults = self.faults
        if call is DiskCall.READ:
            probability = faults.read_error
        elif call is DiskCall.WRITE:
            probability = faults.write_error
        else:
            probability = faults.sync_error
        if probability and self.generator.random() < probability:
            raise fault(errno.EIO, path)

    def spend(self, seconds: float) -> None:
        if self.charge is not None and seconds:
            self.charge(seconds * self.faults.slowness)

    def find(self, path: str) -> Entry:
        """The entry at a path, or ``OSError``."""
        entry: Entry = self.root
        for name in names_of(path):
            if not isinstance(entry, Directory):
                raise fault(errno.ENOTDIR, path)
            found = entry.entries.get(name)
            if found is None:
                raise fault(errno.ENOENT, path)
            entry = found
        return entry

    def find_directory(self, path: str) -> Directory:
        entry = self.find(path)
        if not isinstance(entry, Directory):
            raise fault(errno.ENOTDIR, path)
        return entry

    def find_parent(self, path: str) -> tuple[Directory, str]:
        """The directory that holds, or would hold, the path's last name."""
        names = names_of(path)
        if not names:
            raise fault(errno.EINVAL, path)
        entry: Entry = self.root
        for name in names[:-1]:
            found = entry.entries.get(name) if isinstance(entry, Directory) else None
            if found is None:
                raise fault(errno.ENOENT if isinstance(entry, Directory) else errno.ENOTDIR, path)
            entry = found
        if not isinstance(entry, Directory):
            raise fault(errno.ENOTDIR, path)
        return entry, names[-1]

    def unlinked(self, inode: Inode) -> None:
        """Handle the removal of an inode's name; its space is freed once no process has it open."""
        inode.is_linked = False
        self.release_if_unlinked(inode)

    def release_if_unlinked(self, inode: Inode) -> None:
        if not inode.is_linked and inode.open_count == 0:
            self.used_bytes -= len(inode.content)
