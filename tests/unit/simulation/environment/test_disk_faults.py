"""The words the disk's parts share."""

from __future__ import annotations

import errno

from millbeck.simulation.environment.disk_faults import DiskFaults, fault, names_of


def test_paths_are_split_into_names() -> None:
    assert names_of("/data//t-0/./a.log") == ["data", "t-0", "a.log"]
    assert names_of("/") == []


def test_faults_are_the_errors_a_kernel_raises() -> None:
    assert isinstance(fault(errno.ENOENT, "/a"), FileNotFoundError)
    assert isinstance(fault(errno.EWOULDBLOCK, "/a"), BlockingIOError)
    assert fault(errno.ENOSPC, "/a").filename == "/a"


def test_a_new_disk_is_faultless() -> None:
    faults = DiskFaults()
    assert (faults.read_error, faults.write_error, faults.sync_error, faults.cold_read) == (0, 0, 0, 0)
