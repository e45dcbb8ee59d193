"""Compacted segments in the place of old ones."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.compaction.compactor import compact
from millbeck.storage.swap import Swap, SwapState
from tests.log_steps import apply_retention, truncate_to
from tests.unit.storage.compaction.conftest import CompactedWorld


@pytest.fixture
def table(world: Any) -> CompactedWorld:
    return CompactedWorld(world)


def prepared(table: CompactedWorld) -> tuple[Swap, Any]:
    """Three segments compacted into one that is not in place yet; 2 of 7 records stay in it."""
    table.put((b"a", b"1"), (b"b", b"1"))
    table.roll()
    table.put((b"a", b"2"), (b"b", b"2"))
    table.roll()
    table.put((b"a", b"3"), (b"b", b"3"))
    table.roll()
    table.put((b"z", b"1"))
    plan = table.plan()
    return Swap(plan, compact(plan.job, table.world.files)), plan


def finish(swap: Swap, plan: Any) -> None:
    swap.run()
    plan.release()


def test_new_segments_take_the_place_of_old_ones(table: Any) -> None:
    swap, plan = prepared(table)
    assert swap.run()
    plan.release()
    assert table.log.swap is None
    assert table.log.base_offsets == [0, 6]
    assert table.records() == [(4, b"a", b"3"), (5, b"b", b"3"), (6, b"z", b"1")]
    table.world.run_all(swap.removals)
    assert table.world.names(".log") == ["00000000000000000000.log", "00000000000000000006.log"]
    assert not [name for name in table.world.names() if name.endswith((".swap", ".cleaned", ".deleted"))]
    assert table.world.names(".snapshot") == ["00000000000000000006.snapshot"]


def test_a_reader_in_the_middle_goes_on_and_then_finds_the_next_record(table: Any) -> None:
    swap, plan = prepared(table)
    reading = table.log.read(1, size_bytes_max=1 << 20, upto_offset=7)
    finish(swap, plan)
    table.world.run_all(swap.removals)
    assert len(table.world.content(reading)) > 60
    assert table.world.read(1) == [4]
    assert table.world.read(2) == [4]
    assert table.world.read(6) == [6]


def test_readers_find_everything_between_the_steps(table: Any) -> None:
    swap, plan = prepared(table)
    table.world.directory._environment.cache.close_idle()
    job = swap.next_job()
    states = []
    while job is not None:
        job()
        states.append(swap.state)
        assert table.world.read(5)[0] in (4,)
        assert table.world.read(6) == [6]
        table.world.directory._environment.cache.close_idle()
        for segment in table.log.segments:
            segment.drop_indexes()
        job = swap.next_job()
    assert states == [SwapState.SECURED, SwapState.NAMED, SwapState.INSTALLED, SwapState.RENAMED]
    plan.release()


def test_the_recovery_point_on_disk_is_beyond_before_any_name_changes(table: Any) -> None:
    swap, _ = prepared(table)
    assert table.world.directory._checkpoints.recovery_points == {}
    job = swap.next_job()
    assert job is not None
    assert table.world.names(".swap") == []
    job()
    assert list(table.world.directory._checkpoints.recovery_points.values()) == [6]


def test_truncation_before_it_is_installed_undoes_it(table: Any) -> None:
    swap, plan = prepared(table)
    for _ in range(2):
        job = swap.next_job()
        assert job is not None
        job()
    assert swap.state is SwapState.NAMED
    truncate_to(table.log, 3)
    assert table.log.swap is None
    assert table.world.names(".swap") == []
    finish(swap, plan)
    assert swap.state is SwapState.ABANDONED
    assert table.world.names(".cleaned") == []
    assert table.log.end_offset == 2
    assert table.records() == [(0, b"a", b"1"), (1, b"b", b"1")]


def test_truncation_after_it_is_installed_finishes_it(table: Any) -> None:
    swap, plan = prepared(table)
    for _ in range(3):
        job = swap.next_job()
        assert job is not None
        job()
    assert swap.state is SwapState.INSTALLED
    truncate_to(table.log, 5)
    assert table.world.names(".swap") == []
    finish(swap, plan)
    assert swap.state is SwapState.DONE
    assert table.log.end_offset == 4
    assert table.world.lose_power_and_reopen(0.0).end_offset in (0, 4)


def test_what_was_truncated_during_compaction_is_not_brought_back(table: Any) -> None:
    swap, plan = prepared(table)
    truncate_to(table.log, 4)
    finish(swap, plan)
    assert swap.state is SwapState.ABANDONED
    assert table.log.end_offset == 4
    assert table.world.names(".cleaned") == []


def test_a_log_that_was_cut_and_has_grown_again_is_not_given_its_past(table: Any) -> None:
    swap, plan = prepared(table)
    segments = table.log.segments[:3]
    truncate_to(table.log, 5)
    table.put((b"a", b"9"), (b"b", b"9"))
    table.roll()
    table.put((b"z", b"9"))
    assert table.log.segments[:3] == segments
    finish(swap, plan)
    assert swap.state is SwapState.ABANDONED
    assert table.world.names(".cleaned") == []
    assert table.records()[-3:] == [(4, b"a", b"9"), (5, b"b", b"9"), (6, b"z", b"9")]


def test_a_cut_finds_an_installed_swap_synced_when_a_thread_did_it(table: Any) -> None:
    swap, plan = prepared(table)
    for expected in (SwapState.SECURED, SwapState.NAMED, SwapState.INSTALLED):
        assert swap.rollback_job() is None
        job = swap.next_job()
        assert job is not None
        assert swap.state is expected
        if expected is not SwapState.INSTALLED:
            job()
    job = swap.rollback_job()
    assert job is not None
    job()
    assert swap.rollback_job() is None
    table.world.disk.faults.sync_error = 1.0
    swap.complete_or_roll_back()
    table.world.disk.faults.sync_error = 0.0
    assert table.world.names(".swap") == []
    finish(swap, plan)
    assert swap.state is SwapState.DONE


def test_an_index_that_is_still_to_be_saved_ends_the_swap(table: Any) -> None:
    """A flush would write it under the new segment's name."""
    swap, plan = prepared(table)
    table.log.rebuild_indexes(table.log.segments[0], "a test")
    finish(swap, plan)
    assert swap.state is SwapState.ABANDONED
    assert table.log.swap is None
    table.roll()
    table.log.flush()
    plan = table.plan()
    assert Swap(plan, compact(plan.job, table.world.files)).run()


def test_segments_that_retention_took_are_let_go(table: Any) -> None:
    table.world.configure(cleanup_policy="compact", internal_segment_bytes="100")
    for number in range(4):
        table.put((b"k%d" % number, b"v" * 30))
        table.roll()
    plan = table.plan()
    swap = Swap(plan, compact(plan.job, table.world.files, open_source=plan.open_source))
    table.log.delete_records(2)
    table.world.run_all(apply_retention(table.log, table.now_ms))
    assert swap.run()
    plan.release()
    assert table.log.base_offsets == [2, 3, 4]
    assert [offset for offset, _, _ in table.records()] == [2, 3]
    assert table.world.names(".cleaned") == []


def test_half_a_group_that_retention_took_ends_the_swap(table: Any) -> None:
    swap, plan = prepared(table)
    table.log.delete_records(2)
    table.world.run_all(apply_retention(table.log, table.now_ms))
    finish(swap, plan)
    assert swap.state is SwapState.ABANDONED
    assert table.log.base_offsets == [2, 4, 6]
    assert [offset for offset, _, _ in table.records()] == [2, 3, 4, 5, 6]


def test_a_full_disk_before_names_change_costs_only_the_work(table: Any) -> None:
    swap, plan = prepared(table)
    table.world.disk.fail_next(DiskCall.WRITE, path_part="checkpoint", error=errno.ENOSPC)
    finish(swap, plan)
    assert swap.state is SwapState.ABANDONED
    assert not table.log.is_offline
    assert table.world.names(".cleaned") == []
    assert len(table.records()) == 7


def test_a_failed_sync_of_names_fails_the_directory(table: Any) -> None:
    swap, plan = prepared(table)
    job = swap.next_job()
    assert job is not None
    job()
    job = swap.next_job()
    assert job is not None
    table.world.disk.fail_next(DiskCall.SYNC, path_part="topic-0")
    job()
    finish(swap, plan)
    assert table.log.is_offline
    assert table.world.failures


def test_a_deleted_log_is_left_alone(table: Any) -> None:
    swap, plan = prepared(table)
    table.log.mark_offline("it was deleted", is_wanted=True)
    finish(swap, plan)
    assert swap.state is SwapState.ABANDONED
    assert table.world.names(".log.cleaned")


def test_the_scrubber_reads_the_new_segment_from_its_beginning(table: Any) -> None:
    from millbeck.storage.scrub import Scrubber

    swap, plan = prepared(table)
    scrubber = Scrubber(table.log)
    job = scrubber.next_job()
    assert job is not None
    job.run()
    finish(swap, plan)
    scrubber.finish(job)
    while (job := scrubber.next_job()) is not None:
        job.run()
        scrubber.finish(job)
    assert not table.log.is_offline
