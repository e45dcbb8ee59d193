"""When a log is flushed, what a flush takes along, and what its failure means."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from millbeck.kernel.errors import KafkaStorageError
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.flush import FlushOutcome


def test_by_default_only_a_roll_asks_for_a_flush(world: Any) -> None:
    world.append_many(5)
    assert not world.log.is_flush_due(10**15)
    world.log.roll(0)
    assert world.log.is_flush_due(0)
    world.log.flush()
    assert not world.log.is_flush_due(0)
    assert world.log.flushed_offset == 5


def test_flush_messages_counts_records(world: Any) -> None:
    world.configure(flush_messages="3")
    world.append(world.batch(2))
    assert not world.log.is_flush_due(0)
    world.append()
    assert world.log.is_flush_due(0)
    world.log.flush()
    assert not world.log.is_flush_due(0)


def test_flush_ms_counts_from_the_oldest_unflushed_record(world: Any) -> None:
    world.configure(flush_ms="1000")
    start = world.clock_ms
    assert not world.log.is_flush_due(start + 10_000)
    world.append()
    world.clock_ms += 900
    world.append()
    assert not world.log.is_flush_due(start + 999)
    assert world.log.is_flush_due(start + 1000)
    world.log.flush()
    assert not world.log.is_flush_due(start + 10_000)


def test_only_one_flush_runs_at_a_time_and_later_appends_wait_for_the_next(world: Any) -> None:
    world.configure(flush_messages="1")
    world.append_many(2)
    job = world.log.flush_job()
    world.append()
    assert world.log.flush_job() is None
    assert not world.log.is_flush_due(0)
    world.log.finish_flush(job, job.run())
    assert world.log.flushed_offset == 2
    assert world.log.is_flush_due(0)


def test_what_is_flushed_survives_a_power_loss_with_everything_about_it(world: Any) -> None:
    world.append_many(20)
    world.append(world.batch(producer_id=1), leader_epoch=3)
    world.log.flush()
    log = world.lose_power_and_reopen(survival=0.0)
    assert log.end_offset == 21
    assert log.epochs.entries() == [(0, 0), (3, 20)]
    assert log.producers.producers[1].last_sequence == 0
    assert dict(world.directory.partitions())


def test_the_recovery_point_waits_for_the_indexes_of_sealed_segments(world: Any) -> None:
    world.configure(internal_segment_bytes="100000")
    world.append_many(4)
    world.log.flush()
    assert world.log.recovery_point == 4
    world.log.roll(0)
    assert (world.log.flushed_offset, world.log.recovery_point) == (4, 0)
    world.log.flush()
    assert world.log.recovery_point == 4
    assert world.names(".timeindex") == ["00000000000000000000.timeindex"]


def test_a_failed_sync_is_not_retried_and_takes_the_directory_offline(world: Any) -> None:
    world.append()
    world.disk.fail_next(DiskCall.SYNC, path_part=".log")
    with pytest.raises(KafkaStorageError):
        world.log.flush()
    assert world.log.is_offline
    assert len(world.failures) == 1
    assert world.log.flush_job() is None
    assert world.log.flushed_offset == 0


def test_a_full_disk_defers_a_flush_until_there_is_room(world: Any) -> None:
    world.append()
    world.log.roll(0)
    world.disk.faults.capacity_bytes = 0
    assert world.log.flush_job() is None
    assert all(segment.handle.leases == 0 for segment in world.log.segments)
    world.disk.faults.capacity_bytes = 1 << 40
    world.disk.fail_next(DiskCall.WRITE, path_part=".timeindex", error=errno.ENOSPC)
    job = world.log.flush_job()
    result = job.run()
    world.log.finish_flush(job, result)
    assert (result.outcome, result.error.errno) == (FlushOutcome.DEFERRED, errno.ENOSPC)
    assert not world.log.is_offline
    assert world.log.is_flush_due(0)
    world.log.flush()
    assert world.log.recovery_point == 1


def test_files_stay_leased_while_a_flush_runs(world: Any) -> None:
    world.append_many(30)
    job = world.log.flush_job()
    assert all(segment.handle.leases == 1 for segment in world.log.segments)
    world.log.environment.cache.close_idle()
    result = job.run()
    assert result.outcome is FlushOutcome.DONE
    world.log.finish_flush(job, result)
    assert all(segment.handle.leases == 0 for segment in world.log.segments)


def test_a_log_that_was_closed_cleanly_needs_no_flush(world: Any) -> None:
    world.append_many(3)
    world.close_and_reopen()
    assert world.log.flush_job() is None


def test_snapshots_are_kept_at_segment_bases(world: Any) -> None:
    world.append_many(20)
    world.log.flush()
    offsets = [int(name.partition(".")[0]) for name in world.names(".snapshot")]
    assert offsets == world.log.base_offsets[1:]
    assert world.log.durability.snapshot_offsets == offsets
