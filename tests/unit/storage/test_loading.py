"""Opening after a clean stop reads almost nothing; whatever is not as it should be is made right."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.simulation.environment.disk_faults import DiskCall


def filled(world: Any) -> None:
    for index in range(20):
        world.append(world.batch(producer_id=1, sequence=index, transactional=True), leader_epoch=index // 8)


def test_a_clean_stop_loses_nothing(world: Any) -> None:
    filled(world)
    live = world.log
    log = world.close_and_reopen()
    assert (log.end_offset, log.flushed_offset, log.base_offsets) == (20, 20, live.base_offsets)
    assert log.epochs.entries() == live.epochs.entries()
    assert log.producers.producers == live.producers.producers
    assert log.last_stable_offset(20) == 0
    assert world.stored(log) == list(range(20))
    assert world.append(world.batch(producer_id=1, sequence=20, transactional=True)).first_offset == 20


def test_after_a_clean_stop_no_batch_is_read_where_no_producers_are_known(world: Any) -> None:
    world.append_many(20)
    assert world.directory.close()
    world.disk.unmount(world.files)
    world.disk.fail_next(DiskCall.READ, path_part=".log", count=100)
    assert world.reopen().end_offset == 20


def test_without_the_snapshot_that_proves_it_the_end_is_looked_for(world: Any) -> None:
    filled(world)
    assert world.directory.close()
    world.files.unlink(f"{world.path}/00000000000000000020.snapshot")
    log = world.kill_and_reopen()
    assert log.end_offset == 20
    assert log.producers.producers[1].last_sequence == 19


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_rebuilt(world: Any, suffix: str) -> None:
    filled(world)
    expected = [segment.offset_index().entries() for segment in world.log.segments]
    assert world.directory.close()
    for base in world.log.base_offsets:
        world.files.unlink(f"{world.path}/{base:020d}{suffix}")
    log = world.kill_and_reopen()
    assert [segment.offset_index().entries() for segment in log.segments] == expected
    log.flush()
    assert len(world.names(suffix)) == len(expected) - 1


def test_a_damaged_index_of_the_active_segment_sends_it_through_recovery(world: Any) -> None:
    filled(world)
    assert world.directory.close()
    world.write_file(f"{world.log.base_offsets[-1]:020d}.index", b"damage")
    log = world.kill_and_reopen()
    assert (log.end_offset, world.stored(log)) == (20, list(range(20)))


@pytest.mark.parametrize("content", [None, b"damage", b"0\n1\n5 3\n5 9\n"])
def test_missing_or_damaged_epochs_are_read_from_the_batches(world: Any, content: bytes | None) -> None:
    filled(world)
    expected = world.log.epochs.entries()
    assert world.directory.close()
    if content is None:
        world.files.unlink(f"{world.path}/leader-epoch-checkpoint")
    else:
        world.write_file("leader-epoch-checkpoint", content)
    assert world.kill_and_reopen().epochs.entries() == expected


def test_a_damaged_snapshot_is_passed_over_for_an_older_one(world: Any) -> None:
    filled(world)
    assert world.directory.close()
    newest = world.names(".snapshot")[-1]
    world.overwrite(newest, 12, b"\xff\xff")
    log = world.kill_and_reopen()
    assert log.producers.producers[1].last_sequence == 19
    assert log.last_stable_offset(20) == 0


def test_stale_snapshots_are_removed(world: Any) -> None:
    filled(world)
    world.close_and_reopen()
    world.append(world.batch(producer_id=1, sequence=20, transactional=True))
    world.close_and_reopen()
    offsets = [int(name.partition(".")[0]) for name in world.names(".snapshot")]
    assert offsets == [*world.log.base_offsets[1:], 21]


def test_the_checkpointed_log_start_is_respected(world: Any) -> None:
    filled(world)
    world.log.delete_records(13)
    world.directory.checkpoint_job()()
    for reopen in (world.kill_and_reopen, world.close_and_reopen):
        assert reopen().log_start_offset == 13


def test_a_log_that_ends_before_its_start_starts_over_there(world: Any) -> None:
    world.append_many(3)
    world.log.flush()
    world.append_many(3)
    world.log.delete_records(5)
    world.directory.checkpoint_job()()
    log = world.lose_power_and_reopen(survival=0.0)
    assert (log.log_start_offset, log.end_offset, log.base_offsets) == (5, 5, [5])
    assert world.append().first_offset == 5


def test_an_empty_directory_gives_an_empty_log(world: Any) -> None:
    assert world.log.end_offset == 0
    world.files.unlink(f"{world.path}/00000000000000000000.log")
    log = world.kill_and_reopen()
    assert (log.end_offset, log.size_bytes) == (0, 0)


def test_a_directory_without_files_after_a_clean_stop_is_closed_and_opened_again(world: Any) -> None:
    assert world.log.end_offset == 0
    log = world.close_and_reopen()
    assert (log.end_offset, world.names(".index")) == (0, ["00000000000000000000.index"])


def test_a_cut_that_the_process_before_did_not_sync_is_synced_before_anything_is_written(world: Any) -> None:
    """Else a power loss could bring back what was cut off, in the middle of what was written since."""
    filled(world)
    world.log.flush()
    kept = world.log.segments[-1].base_offset + 1
    while (job := world.log.lowering_job(kept)) is not None:
        job()
    world.log.cut_to(kept)
    assert world.log.must_settle
    log = world.kill_and_reopen()
    assert log.end_offset == kept
    world.disk.power_loss(survival=0.0)
    again = world.reopen()
    assert (again.end_offset, world.stored(again)) == (kept, list(range(kept)))
