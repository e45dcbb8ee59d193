from __future__ import annotations

import errno
import random

import pytest

from millbeck.kernel.environment import OpenMode
from millbeck.storage.atomic_file import make_directory_durably, read_file
from millbeck.storage.flush import FlushJob, FlushOutcome, SmallFile
from millbeck.testing.sim.disk import SimDisk
from millbeck.testing.sim.disk_faults import DiskCall


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
    job.small_files.append(SmallFile("/data/0.index", b"index"))
    job.small_files.append(SmallFile("/data/epochs", b"epochs", is_replaced=True))
    job.directories.append("/data")
    return disk, job


def test_everything_in_a_job_is_durable_when_it_is_done() -> None:
    disk, job = prepared()
    assert job.run().outcome is FlushOutcome.DONE
    disk.power_loss(0.0)
    files = disk.mount()
    assert read_file(files, "/data/0.log", 100) == b"batches"
    assert read_file(files, "/data/0.index", 100) == b"index"
    assert read_file(files, "/data/epochs", 100) == b"epochs"


@pytest.mark.parametrize("path", ["0.index", "epochs.tmp"])
def test_a_small_file_that_cannot_be_written_defers_the_job(path: str) -> None:
    disk, job = prepared()
    disk.fail_next(DiskCall.WRITE, path_part=path, error=errno.ENOSPC)
    result = job.run()
    assert result.outcome is FlushOutcome.DEFERRED
    assert result.error is not None
    assert job.run().outcome is FlushOutcome.DONE


@pytest.mark.parametrize("path", ["0.log", "0.index", "epochs.tmp"])
def test_a_sync_that_fails_is_fatal_whatever_it_was_for(path: str) -> None:
    disk, job = prepared()
    disk.fail_next(DiskCall.SYNC, path_part=path, error=errno.ENOSPC)
    assert job.run().outcome is FlushOutcome.FAILED


def test_a_directory_that_cannot_be_synced_is_fatal() -> None:
    disk, job = prepared()
    disk.fail_next(DiskCall.SYNC, path_part="/data", count=4)
    assert job.run().outcome is FlushOutcome.FAILED
