"""A memory cgroup for one broker, version 1 or 2, made and removed by us; needs root."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

ROOT_V1 = Path("/sys/fs/cgroup/memory")
ROOT_V2 = Path("/sys/fs/cgroup")


class NoMemoryGroups(Exception):
    """This machine gives us no memory controller; the text says why."""


def _root() -> tuple[Path, str]:
    """Where groups are made, and the file that holds the limit."""
    if (ROOT_V1 / "memory.limit_in_bytes").exists():
        return ROOT_V1, "memory.limit_in_bytes"
    controllers = ROOT_V2 / "cgroup.subtree_control"
    if controllers.exists():
        if "memory" not in controllers.read_text().split():
            try:
                controllers.write_text("+memory")
            except OSError as error:
                raise NoMemoryGroups(f"the memory controller cannot be enabled: {error}") from None
        return ROOT_V2, "memory.max"
    raise NoMemoryGroups("no memory controller is mounted")


@contextlib.contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path]:
    """A group whose processes and page cache together stay below the limit."""
    root, limit_file = _root()
    group = root / f"millbeck-bench-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit_file).write_text(str(limit_bytes))
    except OSError as error:
        raise NoMemoryGroups(f"no memory group can be made: {error}") from None
    try:
        yield group
    finally:
        # The kernel lets go of a group a moment after its last process has ended.
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)
