from __future__ import annotations

import errno
import random

import pytest

from millbeck.kernel.environment import OpenMode
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.atomic_file import make_directory_durably, read_file
from millbeck.storage.flush import FlushJob, FlushOutcome, SmallFile


def prepared() -> tuple[SimDisk, FlushJob]:
    disk = SimDisk(random.Random(1))
    files = disk.mount()
    make_directory_durably(files, "/data")
    job = FlushJob(files, 10, 0)
    file = files.open("/data/0.log", OpenMode.WRITE)
    file.write([b"batches"], 0)
    file.allocate(100)
    job.trims.append((file, 7))
    job.syncs.append(file)
    files.open("/data/metadata", OpenMode.WRITE).write([b"metadata"], 0)
    for small in (
        SmallFile("/data/0.index", b"index"),
        SmallFile("/data/empty", b""),
        SmallFile("/data/metadata", None),
    ):
        job.add_small_file(small)
    job.directories.append("/data")
    return disk, job


def test_everything_in_a_job_is_durable_when_it_is_done() -> None:
    disk, job = prepared()
    assert job.run().outcome is FlushOutcome.DONE
    disk.power_loss(0.0)
    files = disk.mount()
    assert read_file(files, "/data/0.log", 100) == b"batches"
    assert read_file(files, "/data/0.index", 100) == b"index"
    assert read_file(files, "/data/empty", 100) == b""
    assert read_file(files, "/data/metadata", 100) == b"metadata"


def test_a_small_file_that_cannot_be_written_defers_the_job() -> None:
    disk, job = prepared()
    disk.fail_next(DiskCall.WRITE, path_part="0.index", error=errno.ENOSPC)
    result = job.run()
    assert result.outcome is FlushOutcome.DEFERRED
    assert result.error is not None


def test_small_files_are_closed_whatever_happens() -> None:
    disk, job = prepared()
    files = disk._mounts[-1]
    before = len(files.open_files)
    job.run()
    assert len(files.open_files) == before - 3
    _, abandoned = prepared()
    released: list[int] = []
    abandoned.releases.append(lambda: released.append(1))
    abandoned.abandon()
    assert released == [1]


def test_files_are_named_when_the_job_is_made_not_when_it_runs() -> None:
    disk, job = prepared()
    files = disk.mount()
    files.rename("/data", "/deleted")
    files.make_directory("/data")
    job.run()
    assert files.names("/data") == []
    assert read_file(files, "/deleted/0.index", 100) == b"index"


@pytest.mark.parametrize("path", ["0.log", "0.index", "metadata"])
def test_a_sync_that_fails_is_fatal_whatever_it_was_for(path: str) -> None:
    disk, job = prepared()
    disk.fail_next(DiskCall.SYNC, path_part=path, error=errno.ENOSPC)
    assert job.run().outcome is FlushOutcome.FAILED


def test_a_directory_that_cannot_be_synced_is_fatal() -> None:
    disk, job = prepared()
    disk.fail_next(DiskCall.SYNC, path_part="/data", count=4)
    assert job.run().outcome is FlushOutcome.FAILED


def test_a_directory_for_which_there_is_no_descriptor_defers_the_job() -> None:
    disk, job = prepared()
    disk.fail_next(DiskCall.SYNC, path_part="/data", count=1, error=errno.EMFILE)
    job.small_files.clear()
    job.syncs.clear()
    assert job.run().outcome is FlushOutcome.DEFERRED
    assert job.run().outcome is FlushOutcome.DONE
