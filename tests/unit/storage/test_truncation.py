"""Cutting the end off, as a follower does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.log_steps import apply_retention, truncate_to


def filled(world: Any) -> None:
    """Batches of two records; three to a segment; one epoch each."""
    world.configure(internal_segment_bytes=str(3 * len(world.batch(2))), index_interval_bytes="50")
    for epoch in range(8):
        world.append(
            world.batch(2, producer_id=1, sequence=2 * epoch, timestamp=1000 * (8 - abs(epoch - 4))), leader_epoch=epoch
        )


@pytest.mark.parametrize("offset", [14, 12, 10, 6, 4, 2, 0])
def test_everything_from_the_offset_on_is_gone(world: Any, offset: int) -> None:
    filled(world)
    world.run_all(truncate_to(world.log, offset))
    log = world.log
    assert log.end_offset == offset
    assert world.stored() == list(range(0, offset, 2))
    assert log.epochs.entries() == [(epoch, 2 * epoch) for epoch in range(offset // 2)]
    entry = log.producers.producers.get(1)
    assert (entry.last_sequence if entry else -1) == offset - 1
    assert world.append(world.batch(producer_id=1, sequence=offset), leader_epoch=9).first_offset == offset
    for start in range(offset):
        assert world.read(start)[0] == start - start % 2
    for segment in log.segments:
        timestamps = [header.max_timestamp for _, header in segment.headers()]
        assert segment.largest_timestamp() == max(timestamps, default=-1)


def test_inside_a_batch_the_whole_batch_goes(world: Any) -> None:
    filled(world)
    truncate_to(world.log, 9)
    assert (world.log.end_offset, world.stored()) == (8, [0, 2, 4, 6])


def test_beyond_the_end_only_epochs_without_records_go(world: Any) -> None:
    filled(world)
    world.log.assign_epoch(20, 16)
    assert truncate_to(world.log, 16) == []
    assert world.log.epochs.latest_epoch == 7
    assert world.log.end_offset == 16


def test_before_the_first_segment_the_log_starts_over(world: Any) -> None:
    filled(world)
    world.log.flush()
    world.configure(internal_segment_bytes="300", retention_bytes="0")
    apply_retention(world.log, world.clock_ms)
    truncate_to(world.log, 3)
    log = world.log
    assert (log.log_start_offset, log.end_offset, log.base_offsets) == (3, 3, [3])
    assert (log.producers.producers, log.epochs.entries()) == ({}, [])
    assert world.append().first_offset == 3


def test_starting_over_ahead_of_everything(world: Any) -> None:
    filled(world)
    world.run_all(world.log.truncate_fully_and_start_at(500))
    log = world.log
    assert (log.log_start_offset, log.end_offset, log.size_bytes) == (500, 500, 0)
    assert world.append().first_offset == 500
    assert world.kill_and_reopen().end_offset == 501
    assert world.names(".log") == ["00000000000000000500.log"]


def test_the_recovery_point_on_disk_is_lowered_first(world: Any) -> None:
    filled(world)
    world.log.flush()
    world.directory.checkpoint_job()()
    truncate_to(world.log, 4)
    world.append(world.batch(1, size=200), leader_epoch=9)
    log = world.lose_power_and_reopen(survival=0.0)
    assert not log.is_offline
    assert (log.end_offset, world.stored(log)) == (4, [0, 2])


def test_the_cut_is_durable_at_once(world: Any) -> None:
    filled(world)
    world.log.flush()
    truncate_to(world.log, 4)
    log = world.lose_power_and_reopen(survival=0.0)
    assert world.stored(log) == [0, 2]


def test_a_reader_of_the_cut_segment_keeps_its_file(world: Any) -> None:
    filled(world)
    found = world.log.read(0, size_bytes_max=10_000, upto_offset=16)
    truncate_to(world.log, 2)
    assert len(world.content(found)) == len(world.batch(2, producer_id=1))


def test_a_snapshot_of_the_same_name_is_not_deleted_with_the_old_one(world: Any) -> None:
    filled(world)
    world.log.flush()
    removals = truncate_to(world.log, 10)
    assert "00000000000000000012.snapshot.deleted" in world.names()
    world.append(world.batch(2, producer_id=1, sequence=10), leader_epoch=9)
    world.log.roll(0)
    world.log.flush()
    world.run_all(removals)
    assert world.names(".snapshot")[-1] == "00000000000000000012.snapshot"
    assert world.names(".deleted") == []


def test_a_snapshot_that_a_running_flush_wrote_is_removed_too(world: Any) -> None:
    filled(world)
    job = world.log.flush_job()
    removals = world.log.cut_to(2)
    world.log.finish_flush(job, job.run())
    world.log.flush()
    world.run_all(removals)
    assert world.names(".snapshot") == []


def test_a_flush_that_was_running_counts_for_nothing(world: Any) -> None:
    filled(world)
    job = world.log.flush_job()
    truncate_to(world.log, 4)
    world.log.finish_flush(job, job.run())
    assert world.log.flushed_offset <= 4
