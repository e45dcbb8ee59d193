from __future__ import annotations

import errno
import random

import pytest

from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.atomic_file import make_directory_durably, parent_of, read_file, replace_file, write_file


def disk_with_data() -> SimDisk:
    disk = SimDisk(random.Random(3))
    make_directory_durably(disk.mount(), "/data")
    return disk


def test_after_a_power_loss_the_new_content_is_there() -> None:
    disk = disk_with_data()
    for content in (b"old", b"newer"):
        replace_file(disk.mount(), "/data/file", content)
        disk.power_loss(0.0)
        assert read_file(disk.mount(), "/data/file", 100) == content


@pytest.mark.parametrize("call", [DiskCall.WRITE, DiskCall.SYNC])
def test_when_writing_fails_the_old_content_stays(call: DiskCall) -> None:
    disk = disk_with_data()
    files = disk.mount()
    replace_file(files, "/data/file", b"old")
    disk.fail_next(call, path_part="file.tmp", error=errno.EIO)
    with pytest.raises(OSError):
        replace_file(files, "/data/file", b"new")
    assert read_file(files, "/data/file", 100) == b"old"


def test_a_shorter_content_replaces_a_longer_one_whole() -> None:
    files = disk_with_data().mount()
    write_file(files, "/data/file", b"a longer one", sync=False)
    write_file(files, "/data/file", b"short", sync=False)
    assert read_file(files, "/data/file", 100) == b"short"


def test_reading_is_bounded_and_tells_missing_from_empty() -> None:
    files = disk_with_data().mount()
    assert read_file(files, "/data/none", 10) is None
    write_file(files, "/data/file", b"", sync=False)
    assert read_file(files, "/data/file", 10) == b""
    write_file(files, "/data/file", b"12345678901", sync=False)
    with pytest.raises(OSError, match="larger"):
        read_file(files, "/data/file", 10)


def test_a_directory_survives_with_all_its_parents() -> None:
    disk = SimDisk(random.Random(3))
    make_directory_durably(disk.mount(), "/a/b/c")
    disk.power_loss(0.0)
    assert disk.mount().is_directory("/a/b/c")


def test_parent_of() -> None:
    assert parent_of("/a/b/c") == "/a/b"
    assert parent_of("/a") == "/"
