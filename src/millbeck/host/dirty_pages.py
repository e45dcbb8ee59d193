"""Decides by the number of dirty pages whether writeback should be started.

The kernel writes dirty pages by itself, after half a minute or when there are many. If a writer is faster than the
disk, their number grows, and at the dirty limit the kernel blocks the writer: here that is the event loop. Starting
writeback early keeps a broker away from the limit, but costs processor time, which is wasted if the limit is far
(docs/adr/0012). So writeback starts at a quarter of the background threshold, at which the kernel itself starts it.

In a container with a memory limit the threshold is a share of that limit. The container's own dirty pages are not
counted; those of the whole machine are compared with it, which at worst starts writeback unnecessarily. The same
happens when a value cannot be read.
"""

from __future__ import annotations

import os
import re
import resource
from typing import Final

PART_OF_THRESHOLD: Final = 4
"""Writeback starts when the dirty pages reach the kernel's background threshold divided by this number."""
BACKGROUND_PERCENT: Final = 10
"""The kernel's default ratio, for systems configured in bytes, which apply to the whole machine."""

_DIRTY: Final = re.compile(rb"\nnr_dirty (\d+)\n")
_THRESHOLD: Final = re.compile(rb"\nnr_dirty_background_threshold (\d+)\n")
_NO_LIMIT: Final = b"max"


class DirtyPages:
    def __init__(self, proc: str = "/proc", cgroup_root: str = "/sys/fs/cgroup") -> None:
        self._proc = proc
        self._cgroup_root = cgroup_root
        self._container_threshold: float | None = None
        """The threshold, read at the first call. Concurrent first calls read the same value."""

    def should_write_back(self) -> bool:
        """Call it on a thread, and not too often: it takes some 30 microseconds, in which the kernel sums its
        counters.
        """
        try:
            counters = _read(f"{self._proc}/vmstat")
            if self._container_threshold is None:
                self._container_threshold = self._read_container_threshold()
            threshold = min(_number(_THRESHOLD, counters), self._container_threshold)
            return _number(_DIRTY, counters) * PART_OF_THRESHOLD >= threshold
        except (OSError, ValueError):
            return True

    def _read_container_threshold(self) -> float:
        """The threshold in pages by the container's limits; infinity without a limit."""
        limits = [limit for directory, names in self._groups() for name in names for limit in _limits(directory, name)]
        if not limits:
            return float("inf")
        percent = int(_read(f"{self._proc}/sys/vm/dirty_background_ratio")) or BACKGROUND_PERCENT
        return min(limits) * percent / 100 / resource.getpagesize()

    def _groups(self) -> list[tuple[str, tuple[str, ...]]]:
        """Directories of this process's control groups, up to the root, with the names of their limit files.

        In a container that sees only its own part of the tree the limit is in the root, whatever its path.
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
        raise ValueError("this kernel has no such counter")
    return int(found[1])


def _up_from(root: str, path: str) -> list[str]:
    """A control group's directory and its ancestors', the root last."""
    inside = os.path.normpath(
        f"/{path.strip('/')}"
    )  # the path of a control group outside the visible tree begins with /..
    directories = []
    while inside != "/":
        directories.append(root + inside)
        inside = os.path.dirname(inside)
    return [*directories, root]


def _limits(directory: str, name: str) -> list[int]:
    """The limit in a file, if any: the root has no such file, nor has a control group that is not visible from
    here.
    """
    try:
        text = _read(f"{directory}/{name}").strip()
    except FileNotFoundError:
        return []
    return [] if text == _NO_LIMIT else [int(text)]


of_this_machine: Final = DirtyPages()
