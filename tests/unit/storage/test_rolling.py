"""When a new segment begins, and what that leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import KafkaStorageError
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage import producer_snapshot
from millbeck.storage.offset_index import RELATIVE_OFFSET_MAX


def test_by_size(world: Any) -> None:
    size = len(world.batch())
    world.configure(internal_segment_bytes=str(3 * size))
    world.append_many(7)
    assert world.log.base_offsets == [0, 3, 6]
    assert [segment.size for segment in world.log.segments] == [3 * size, 3 * size, size]


def test_by_the_timestamps_of_the_batches(world: Any) -> None:
    world.configure(segment_ms="1000", internal_segment_bytes="100000")
    for timestamp in (5000, 4000, 6000, 6001, 7002):
        world.append(world.batch(timestamp=timestamp))
    assert world.log.base_offsets == [0, 3, 4]


def test_by_the_clock_where_batches_have_no_timestamp(world: Any) -> None:
    world.configure(segment_ms="1000", internal_segment_bytes="100000")
    world.append(world.batch(timestamp=-1))
    world.clock_ms += 1000
    world.append(world.batch(timestamp=-1))
    assert world.log.base_offsets == [0]
    world.clock_ms += 1
    world.append(world.batch(timestamp=-1))
    assert world.log.base_offsets == [0, 2]


def test_jitter_takes_time_off(world: Any) -> None:
    world.jitter_ms = 300
    world.configure(segment_ms="1000", segment_jitter_ms="500", internal_segment_bytes="100000")
    for timestamp in (5000, 5700, 5701):
        world.append(world.batch(timestamp=timestamp))
    assert world.log.base_offsets == [0, 2]


def test_the_age_counts_across_a_restart(world: Any) -> None:
    world.configure(segment_ms="1000", internal_segment_bytes="100000")
    world.append(world.batch(timestamp=5000))
    world.close_and_reopen()
    world.append(world.batch(timestamp=6001))
    assert world.log.base_offsets == [0, 1]


def test_when_an_index_is_full(world: Any) -> None:
    world.configure(segment_index_bytes="24", index_interval_bytes="0", internal_segment_bytes="100000")
    for index in range(6):
        world.append(world.batch(timestamp=1000 + index))
    assert world.log.base_offsets == [0, 2, 4]


def test_when_an_offset_is_too_far_from_the_base(world: Any) -> None:
    world.append()
    far = bytearray(world.batch())
    far[0:8] = (RELATIVE_OFFSET_MAX + 1).to_bytes(8, "big")
    world.log.append_as_follower(bytes(far), leader_epoch=0, now_ms=0)
    assert world.log.base_offsets == [0, 1]
    farther = bytearray(world.batch())
    farther[0:8] = (4 * RELATIVE_OFFSET_MAX).to_bytes(8, "big")
    world.log.append_as_follower(bytes(farther), leader_epoch=0, now_ms=0)
    assert world.log.base_offsets == [0, 1, 4 * RELATIVE_OFFSET_MAX]
    assert world.read(2) == [RELATIVE_OFFSET_MAX + 1]


def test_batches_of_one_turn_may_fill_several_segments(world: Any) -> None:
    world.configure(internal_segment_bytes=str(2 * len(world.batch())))
    world.append()
    staged = [world.stage(world.batch()) for _ in range(6)]
    world.log.write_staged()
    assert world.log.base_offsets == [0, 2, 4, 6]
    assert [one.first_offset for one in staged] == [1, 2, 3, 4, 5, 6]
    assert world.stored() == list(range(7))


@pytest.mark.parametrize(
    "failing", ["00000000000000000000.log", "00000000000000000002.log", "00000000000000000004.log"]
)
def test_a_failure_in_any_of_them_undoes_all(world: Any, failing: str) -> None:
    world.configure(internal_segment_bytes=str(2 * len(world.batch())))
    world.append()
    world.disk.fail_next(DiskCall.WRITE, path_part=failing)
    for sequence in range(5):
        world.stage(world.batch(producer_id=1, sequence=sequence))
    with pytest.raises(KafkaStorageError):
        world.log.write_staged()
    assert world.log.base_offsets == [0]
    assert world.names(".log") == ["00000000000000000000.log"]
    assert world.stored() == [0]
    assert world.log.producers.producers == {}
    assert not world.log.is_offline
    world.log.flush()
    assert world.append().first_offset == 1


def test_the_snapshot_at_a_roll_holds_the_producers_as_of_that_offset(world: Any) -> None:
    world.configure(internal_segment_bytes=str(2 * len(world.batch())))
    for sequence in range(5):
        world.stage(world.batch(producer_id=1, sequence=sequence))
    world.log.write_staged()
    assert world.log.durability.snapshot_offsets == [2, 4]
    taken = [producer_snapshot.decode(world.log.durability.read_snapshot(world.log, offset))[0] for offset in (2, 4)]
    assert [entry.last_sequence for entry in taken] == [1, 3]
    assert world.log.producers.producers[1].last_sequence == 4


def test_a_sealed_time_index_ends_with_the_largest_timestamp(world: Any) -> None:
    world.configure(index_interval_bytes="100000", internal_segment_bytes="100000")
    for timestamp in (10, 99, 50):
        world.append(world.batch(timestamp=timestamp))
    world.log.roll(0)
    assert world.log.segments[0].time_index().entries() == [(99, 1)]


def test_rolling_an_empty_log_does_nothing(world: Any) -> None:
    world.log.roll(0)
    world.append()
    world.log.roll(0)
    world.log.roll(0)
    assert world.log.base_offsets == [0, 1]


def test_preallocated_space_is_reserved_and_given_back(world: Any) -> None:
    world.configure(preallocate="true", internal_segment_bytes="1000")
    world.append_many(3)
    path = f"{world.path}/00000000000000000000.log"
    assert world.files.size(path) == 1000
    assert world.log.size_bytes == 3 * len(world.batch())
    world.log.roll(0)
    assert world.files.size(f"{world.path}/00000000000000000003.log") == 1000
    world.log.flush()
    assert world.files.size(path) == 3 * len(world.batch())
    world.append()
    log = world.close_and_reopen()
    assert world.files.size(f"{world.path}/00000000000000000003.log") == len(world.batch())
    assert log.end_offset == 4


def test_a_flush_that_ran_during_a_truncation_does_not_make_the_file_longer(world: Any) -> None:
    world.configure(preallocate="true", internal_segment_bytes="1000")
    world.append_many(3)
    world.log.roll(0)
    job = world.log.flush_job()
    world.log.cut_to(1)
    world.log.finish_flush(job, job.run())
    world.log.flush()
    assert world.files.size(f"{world.path}/00000000000000000000.log") == world.log.size_bytes == len(world.batch())
    world.append()
    assert world.stored() == [0, 1]
    assert world.kill_and_reopen().end_offset == 2


def test_recovery_cuts_the_zeros_of_a_preallocated_segment(world: Any) -> None:
    world.configure(preallocate="true", internal_segment_bytes="1000")
    world.append_many(3)
    log = world.kill_and_reopen()
    assert (log.end_offset, log.size_bytes) == (3, 3 * len(world.batch()))
    assert world.files.size(f"{world.path}/00000000000000000000.log") == log.size_bytes
