"""What of a log can be compacted, and whether it is worth it."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.storage.compaction import plan as plans
from millbeck.storage.compaction.job import LastProducerBatch
from tests.log_steps import truncate_to


def fill(table: Any, count: int = 4) -> None:
    """Segments of two batches each, the last one active."""
    for number in range(count):
        table.put((b"a", b"%d" % number))
        table.put((b"b", b"%d" % number))
        if number + 1 < count:
            table.roll()


def test_the_active_segment_is_out_of_reach(table: Any) -> None:
    fill(table)
    found = table.survey()
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (0, 6)
    assert (found.clean_bytes, found.dirty_bytes) == (0, sum(one.size for one in table.log.segments[:3]))
    assert found.uncleanable_bytes == table.log.active.size
    assert found.dirty_ratio == 1.0


def test_the_checkpoint_divides_clean_from_dirty(table: Any) -> None:
    fill(table)
    table.checkpoint = 2
    found = table.survey()
    assert found.first_dirty_offset == 2
    assert found.clean_bytes == table.log.segments[0].size
    assert found.dirty_ratio == pytest.approx(2 / 3)


@pytest.mark.parametrize("checkpoint", [1, 100])
def test_a_checkpoint_outside_the_log_is_not_used(table: Any, checkpoint: int) -> None:
    fill(table)
    table.log.delete_records(3)
    table.checkpoint = checkpoint
    found = table.survey()
    assert found.was_reset
    assert found.first_dirty_offset == 3


def test_nothing_at_or_beyond_the_last_stable_offset(table: Any) -> None:
    table.put((b"a", b"1"))
    table.roll()
    table.put((b"a", b"2"))
    table.put((b"a", b"3"), producer_id=1, transactional=True)
    table.roll()
    table.put((b"a", b"4"))
    table.roll()
    assert table.survey().first_uncleanable_offset == 1
    table.world.end_transaction(1, committed=True)
    assert table.survey().first_uncleanable_offset == 4


def test_nothing_at_or_beyond_the_high_watermark(table: Any) -> None:
    fill(table)
    found = plans.survey(table.log, checkpoint=None, high_watermark=3, now_ms=table.now_ms)
    assert found.first_uncleanable_offset == 2


def test_nothing_that_is_not_durable(table: Any) -> None:
    fill(table, 2)
    table.log.roll(table.now_ms)
    assert table.survey().first_uncleanable_offset == 2
    table.log.flush()
    assert table.survey().first_uncleanable_offset == 4


def test_young_records_wait_for_the_minimum_lag(table: Any) -> None:
    table.world.configure(cleanup_policy="compact", min_compaction_lag_ms="1000")
    fill(table, 2)
    table.world.clock_ms += 500
    fill(table, 2)
    table.world.clock_ms += 600
    assert table.survey().first_uncleanable_offset == 2
    table.world.clock_ms += 600
    assert table.survey().first_uncleanable_offset == 6


def test_a_bound_below_what_is_clean_leaves_nothing(table: Any) -> None:
    fill(table)
    table.checkpoint = 6
    found = plans.survey(table.log, checkpoint=6, high_watermark=3, now_ms=table.now_ms)
    assert (found.first_dirty_offset, found.first_uncleanable_offset, found.dirty_bytes) == (6, 6, 0)
    assert plans.prepare(table.log, found, now_ms=0, map_bytes_max=1000) is None


def test_worth_is_a_question_of_ratio_or_of_age(table: Any) -> None:
    table.world.configure(cleanup_policy="compact", min_cleanable_dirty_ratio="0.7", max_compaction_lag_ms="5000")
    fill(table)
    assert table.survey().is_worthwhile
    table.checkpoint = 2
    assert not table.survey().is_worthwhile
    table.world.clock_ms += 5001
    found = table.survey()
    assert found.is_due
    assert found.is_worthwhile
    assert found.compaction_delay_ms == 1
    table.checkpoint = 6
    assert not table.survey().is_due


def test_the_job_knows_what_it_needs_of_the_log(table: Any) -> None:
    table.put((b"a", b"1"), producer_id=4, transactional=True)
    table.world.end_transaction(4, committed=False)
    table.put((b"b", b"1"), producer_id=9)
    table.roll()
    plan = table.plan()
    job = plan.job
    assert [(one.base_offset, one.next_base_offset) for one in job.sources] == [(0, 3)]
    assert [entry[:3] for entry in job.aborted] == [(4, 0, 1)]
    assert job.producers == {4: LastProducerBatch(0, 0), 9: LastProducerBatch(0, 2)}
    assert job.upper_offset == 3
    plan.release()


def test_sources_are_leased_until_release(table: Any) -> None:
    fill(table)
    plan = table.plan()
    # A worker process opens them by their names, so a plan alone holds none.
    assert [one.handle.leases for one in table.log.segments] == [0, 0, 0, 0]
    for source in plan.job.sources[:2]:
        plan.open_source(source).close()
    assert [one.handle.leases for one in table.log.segments] == [1, 1, 0, 0]
    plan.release()
    plan.release()
    assert [one.handle.leases for one in table.log.segments] == [0, 0, 0, 0]


def test_a_lease_is_on_the_file_not_on_the_segment(table: Any) -> None:
    fill(table)
    plan = table.plan()
    opened = plan.open_source(plan.job.sources[1])
    truncate_to(table.log, 3)
    assert opened.read(61, 0)
    plan.release()
    assert [one.handle.leases for one in table.log.segments] == [0, 0]
