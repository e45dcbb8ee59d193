"""What a process's view adds to the contract suite: everything fails once the process is gone."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.kernel.environment import OpenMode
from millbeck.simulation.environment.disk import SimDisk


def _every_call(files: Any) -> dict[str, Callable[[], object]]:
    return {
        "open": lambda: files.open("/a", OpenMode.WRITE),
        "names": lambda: files.names("/"),
        "exists": lambda: files.exists("/a"),
        "is_directory": lambda: files.is_directory("/a"),
        "size": lambda: files.size("/a"),
        "modified_ms": lambda: files.modified_ms("/a"),
        "make_directory": lambda: files.make_directory("/b"),
        "rename": lambda: files.rename("/a", "/b"),
        "unlink": lambda: files.unlink("/a"),
        "remove_tree": lambda: files.remove_tree("/"),
        "sync_directory": lambda: files.sync_directory("/"),
        "lock": lambda: files.lock("/a"),
        "free_bytes": lambda: files.free_bytes("/"),
    }


@pytest.mark.parametrize("name", sorted(_every_call(None)))
def test_a_dead_process_reaches_nothing(name: str) -> None:
    disk = SimDisk(random.Random(1))
    files = disk.mount()
    files.open("/a", OpenMode.WRITE)
    disk.unmount(files)
    with pytest.raises(OSError) as caught:
        _every_call(files)[name]()
    assert caught.value.errno == errno.EBADF
    assert disk.mount().names("/") == ["a"]


def test_files_left_open_do_not_hold_space_after_their_process() -> None:
    disk = SimDisk(random.Random(1))
    files = disk.mount()
    file = files.open("/a", OpenMode.WRITE)
    file.write([b"x" * 10], 0)
    files.unlink("/a")
    disk.unmount(files)
    assert disk.used_bytes == 0
    file.close()
    assert disk.used_bytes == 0
