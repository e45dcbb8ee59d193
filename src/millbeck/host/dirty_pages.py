"""Whether the machine gathers pages that are not on the disk yet, so that it is time to have some written.

The kernel writes them by itself, after half a minute or when there are many. Should a writer be faster than the disk,
there are more and more of them, and at the dirty limit the kernel stops whoever writes: here that is the loop. To ask
for writing early keeps a broker away from the limit, but it costs processor time, for nothing where the limit is far
(docs/adr/0012). So it is done from a quarter of the way to the point where the kernel itself begins.

In a container with a memory limit that point is a share of the limit. How many dirty pages are the container's own is
not asked; those of the whole machine are compared with it, which at worst starts writing for no need. So does whatever
cannot be found out.
"""

from __future__ import annotations

import os
import re
import resource
from typing import Final

PART_OF_THRESHOLD: Final = 4
"""Pages are gathering when there are as many as one part in so many of what makes the kernel begin."""
BACKGROUND_PERCENT: Final = 10
"""The kernel's default, for systems that set bytes: those are meant for the whole machine."""

_DIRTY: Final = re.compile(rb"\nnr_dirty (\d+)\n")
_THRESHOLD: Final = re.compile(rb"\nnr_dirty_background_threshold (\d+)\n")
_NO_LIMIT: Final = b"max"


class DirtyPages:
    def __init__(self, proc: str = "/proc", cgroup_root: str = "/sys/fs/cgroup") -> None:
        self._proc = proc
        self._cgroup_root = cgroup_root
        self._container_threshold: float | None = None
        """Read at the first question. Threads may ask at once; they would find the same."""

    def are_gathering(self) -> bool:
        """For a thread, and not too often: some 30 microseconds, in which the kernel adds up all its counters."""
        try:
            counters = _read(f"{self._proc}/vmstat")
            if self._container_threshold is None:
                self._container_threshold = self._read_container_threshold()
            threshold = min(_number(_THRESHOLD, counters), self._container_threshold)
            return _number(_DIRTY, counters) * PART_OF_THRESHOLD >= threshold
        except (OSError, ValueError):
            return True

    def _read_container_threshold(self) -> float:
        """In pages, as the machine's own; infinity without a limit."""
        limits = [limit for directory, names in self._groups() for name in names for limit in _limits(directory, name)]
        if not limits:
            return float("inf")
        percent = int(_read(f"{self._proc}/sys/vm/dirty_background_ratio")) or BACKGROUND_PERCENT
        return min(limits) * percent / 100 / resource.getpagesize()

    def _groups(self) -> list[tuple[str, tuple[str, ...]]]:
        """Directories of the groups this process is in, up to the root, with the names of their files with limits.

        A container that sees its own part of the tree alone has its limit in the root, whatever its path is.
        """
        root = self._cgroup_root
        groups: list[tuple[str, tuple[str, ...]]] = []
        for line in os.fsdecode(_read(f"{self._proc}/self/cgroup")).splitlines():
            number, controllers, path = line.split(":", 2)
            if number == "0":
                os.stat(root)
                groups.extend((directory, ("memory.max", "memory.high")) for directory in _up_from(root, path))
            elif "memory" in controllers.split(","):
                directories = _up_from(f"{root}/memory", path)
                os.stat(f"{root}/memory")
                groups.extend((directory, ("memory.limit_in_bytes",)) for directory in directories)
        return groups


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _number(pattern: re.Pattern[bytes], text: bytes) -> int:
    found = pattern.search(text)
    if found is None:
        raise ValueError("this kernel does not count that")
    return int(found[1])


def _up_from(root: str, path: str) -> list[str]:
    """A group's directory and its ancestors', the root's last."""
    inside = os.path.normpath(f"/{path.strip('/')}")  # a group outside of what is seen here begins with /..
    directories = []
    while inside != "/":
        directories.append(root + inside)
        inside = os.path.dirname(inside)
    return [*directories, root]


def _limits(directory: str, name: str) -> list[int]:
    """The limit in a file, if there is one: the root has no such file, nor has a group that is not seen from here."""
    try:
        text = _read(f"{directory}/{name}").strip()
    except FileNotFoundError:
        return []
    return [] if text == _NO_LIMIT else [int(text)]


of_this_machine: Final = DirtyPages()
