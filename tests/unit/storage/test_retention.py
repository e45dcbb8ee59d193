"""Old segments go whole, from the front, and never from under a reader."""

from __future__ import annotations

from typing import Any

import pytest

from tests.log_steps import apply_retention


def segments(world: Any, count: int, **options: str) -> int:
    """Fill ``count`` segments with two batches each, flushed; returns a segment's size."""
    size = 2 * len(world.batch())
    world.configure(internal_segment_bytes=str(size), retention_ms="-1", **options)
    for index in range(2 * count):
        world.append(world.batch(timestamp=1000 * (index + 1)))
    world.log.flush()
    return size


def test_by_size_keeps_at_least_what_was_asked_for(world: Any) -> None:
    size = segments(world, 4)
    world.configure(internal_segment_bytes=str(size), retention_ms="-1", retention_bytes=str(2 * size + 1))
    apply_retention(world.log, world.clock_ms)
    assert (world.log.log_start_offset, world.log.size_bytes) == (2, 3 * size)
    world.configure(internal_segment_bytes=str(size), retention_ms="-1", retention_bytes=str(2 * size))
    apply_retention(world.log, world.clock_ms)
    assert (world.log.log_start_offset, world.log.size_bytes) == (4, 2 * size)


def test_by_time_looks_at_the_newest_record_of_a_segment(world: Any) -> None:
    size = segments(world, 4)
    world.configure(internal_segment_bytes=str(size), retention_ms="5000")
    apply_retention(world.log, 9000)
    assert world.log.log_start_offset == 2
    apply_retention(world.log, 9001)
    assert world.log.log_start_offset == 4


def test_records_without_timestamps_age_with_their_file(world: Any) -> None:
    now = [50_000]
    world.disk.now_ms = lambda: now[0]
    world.configure(retention_ms="1000")
    world.append(world.batch(timestamp=-1))
    apply_retention(world.log, 51_000)
    assert world.log.log_start_offset == 0
    apply_retention(world.log, 51_001)
    assert world.log.log_start_offset == 1


def test_the_active_segment_goes_too_and_an_empty_one_takes_its_place(world: Any) -> None:
    size = segments(world, 2)
    world.configure(internal_segment_bytes=str(size), retention_ms="1")
    apply_retention(world.log, 10**9)
    assert (world.log.log_start_offset, world.log.end_offset, world.log.base_offsets) == (4, 4, [4])
    assert world.append().first_offset == 4
    log = world.kill_and_reopen()
    assert (log.log_start_offset, log.end_offset) == (4, 5)


def test_nothing_at_or_beyond_the_high_watermark_goes(world: Any) -> None:
    size = segments(world, 3)
    world.configure(internal_segment_bytes=str(size), retention_ms="1")
    apply_retention(world.log, 10**9, high_watermark=3)
    assert world.log.log_start_offset == 2


def test_without_the_delete_policy_only_what_is_below_the_start_goes(world: Any) -> None:
    segments(world, 3, cleanup_policy="compact", retention_bytes="0")
    apply_retention(world.log, 10**9)
    assert world.log.log_start_offset == 0
    world.log.delete_records(3)
    apply_retention(world.log, 10**9)
    assert (world.log.log_start_offset, world.log.base_offsets) == (3, [2, 4])


def test_files_are_renamed_at_once_and_removed_by_the_job_after_the_delay(world: Any) -> None:
    size = segments(world, 3)
    world.configure(internal_segment_bytes=str(size), retention_bytes="0", file_delete_delay_ms="1234")
    removals = apply_retention(world.log, world.clock_ms)
    assert all(removal.delay_ms == 1234 for removal in removals)
    gone = [f"{base:020d}.log.deleted" for base in (0, 2, 4)]
    assert world.names(".log.deleted") == gone
    world.run_all(removals)
    assert world.names(".deleted") == []
    assert world.names(".log") == ["00000000000000000006.log"]
    assert world.names(".snapshot") == ["00000000000000000006.snapshot"]
    world.run_all(removals)


def test_producers_outlive_the_segments_they_wrote_to(world: Any) -> None:
    world.configure(internal_segment_bytes="200", retention_bytes="0")
    world.append(world.batch(2, producer_id=5, transactional=True))
    world.run_all(apply_retention(world.log, world.clock_ms))
    assert world.log.log_start_offset == 2
    for reopen in (world.kill_and_reopen, world.lose_power_and_reopen):
        log = reopen()
        assert log.producers.producers[5].last_sequence == 1
        assert log.last_stable_offset(log.end_offset) == 0


def test_epochs_begin_at_the_log_start(world: Any) -> None:
    world.configure(internal_segment_bytes="200", retention_bytes="0")
    for epoch in range(3):
        world.append(leader_epoch=epoch)
    apply_retention(world.log, world.clock_ms)
    assert world.log.epochs.entries() == [(2, 3)]


def test_what_was_deleted_stays_deleted_after_a_crash(world: Any) -> None:
    for seed in range(20):
        world.__init__()
        world.disk.generator.seed(seed)
        size = segments(world, 5)
        world.configure(internal_segment_bytes=str(size), retention_ms="-1", retention_bytes=str(2 * size))
        apply_retention(world.log, world.clock_ms)
        assert world.log.log_start_offset == 6
        log = world.lose_power_and_reopen()
        assert not log.is_offline
        assert log.end_offset == 10
        assert world.stored(log)[-4:] == [6, 7, 8, 9]


def test_a_full_disk_does_not_keep_retention_from_making_room(world: Any) -> None:
    size = segments(world, 4)
    world.append_many(1)
    world.configure(internal_segment_bytes=str(size), retention_bytes="0")
    world.disk.faults.capacity_bytes = 0
    world.run_all(apply_retention(world.log, world.clock_ms))
    # The newest sealed segment is not flushed, and there is no room for the snapshot that would replace it.
    assert world.log.log_start_offset == 6
    assert not world.log.is_offline


def test_a_file_that_cannot_be_removed_is_an_error_of_the_job_alone(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = segments(world, 2)
    world.configure(internal_segment_bytes=str(size), retention_bytes="0")
    removals = apply_retention(world.log, world.clock_ms)

    def refuse(path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(world.files, "unlink", refuse)
    with pytest.raises(PermissionError):
        world.run_all(removals)
    assert not world.log.is_offline
