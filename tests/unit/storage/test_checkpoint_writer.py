from __future__ import annotations

import errno
import random

import pytest

from millbeck.kernel.ids import TopicPartition
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.atomic_file import write_file
from millbeck.storage.checkpoint_writer import CheckpointWriter

KEY = TopicPartition("t", 0)


def disk_with_data() -> SimDisk:
    disk = SimDisk(random.Random(1))
    disk.mount().make_directory("/data")
    return disk


def test_both_files_are_written_and_read_back() -> None:
    files = disk_with_data().mount()
    CheckpointWriter(files, "/data").job({KEY: 10}, {KEY: 3})()
    again = CheckpointWriter(files, "/data")
    assert (again.recovery_points, again.log_start_offsets, again.is_damaged) == ({KEY: 10}, {KEY: 3}, False)


def test_an_older_content_never_replaces_a_newer_one() -> None:
    files = disk_with_data().mount()
    writer = CheckpointWriter(files, "/data")
    older, newer = writer.job({KEY: 10}, {}), writer.job({KEY: 4}, {})
    newer()
    older()
    assert CheckpointWriter(files, "/data").recovery_points == {KEY: 4}
    assert writer.recovery_points == {KEY: 4}


def test_what_a_job_on_its_way_will_claim_counts() -> None:
    writer = CheckpointWriter(disk_with_data().mount(), "/data")
    assert not writer.may_exceed(KEY, 0)
    job = writer.job({KEY: 10}, {KEY: 3})
    assert writer.may_exceed(KEY, 9)
    assert not writer.may_exceed(KEY, 10)
    assert not writer.may_exceed(TopicPartition("t", 1), 0)
    later = writer.job({KEY: 4}, {})
    later()
    assert not writer.may_exceed(KEY, 4)
    job()
    assert not writer.may_exceed(KEY, 4)
    writer.job({KEY: 10}, {})()
    assert writer.may_exceed(KEY, 9)
    assert not writer.may_exceed(KEY, 10)


def test_a_failed_write_leaves_what_was_there_and_lets_others_write() -> None:
    disk = disk_with_data()
    files = disk.mount()
    writer = CheckpointWriter(files, "/data")
    writer.job({KEY: 1}, {})()
    disk.fail_next(DiskCall.WRITE, path_part="recovery-point", error=errno.ENOSPC)
    with pytest.raises(OSError):
        writer.job({KEY: 2}, {})()
    assert writer.recovery_points == {KEY: 1}
    assert writer.may_exceed(KEY, 1)
    writer.job({KEY: 3}, {})()
    assert CheckpointWriter(files, "/data").recovery_points == {KEY: 3}


def test_a_damaged_file_counts_as_missing() -> None:
    files = disk_with_data().mount()
    write_file(files, "/data/recovery-point-offset-checkpoint", b"damage", sync=True)
    writer = CheckpointWriter(files, "/data")
    assert writer.is_damaged
    assert writer.recovery_points == {}
