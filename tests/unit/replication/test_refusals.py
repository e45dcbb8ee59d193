"""Which refused batch a later one stands behind."""

from __future__ import annotations

from millbeck.kernel.errors import NotEnoughReplicas, NotLeaderOrFollower
from millbeck.replication.refusals import PRODUCERS_MAX, REMEMBERED_MS, RejectedBatches

NOW_MS = 1_700_000_000_000
SEQUENCE_MAX = 2**31 - 1


def test_what_follows_a_refused_batch_is_refused_for_its_reason_and_what_precedes_it_is_not() -> None:
    refusals = RejectedBatches()
    refusals.add(9, 0, 10, NotLeaderOrFollower, NOW_MS)
    assert refusals.before(9, 0, 11, NOW_MS) is NotLeaderOrFollower
    assert refusals.before(9, 0, 500, NOW_MS + REMEMBERED_MS) is NotLeaderOrFollower
    assert refusals.before(9, 0, 10, NOW_MS) is None
    assert refusals.before(9, 0, 9, NOW_MS) is None


def test_another_producer_and_another_epoch_have_nothing_to_do_with_it() -> None:
    refusals = RejectedBatches()
    refusals.add(9, 3, 10, NotLeaderOrFollower, NOW_MS)
    assert refusals.before(8, 3, 11, NOW_MS) is None
    assert refusals.before(9, 4, 11, NOW_MS) is None
    assert refusals.before(9, 2, 11, NOW_MS) is None


def test_the_first_of_a_row_counts_until_an_earlier_one_is_refused_or_its_time_is_over() -> None:
    refusals = RejectedBatches()
    refusals.add(9, 0, 10, NotLeaderOrFollower, NOW_MS)
    refusals.add(9, 0, 15, NotEnoughReplicas, NOW_MS)
    assert refusals.before(9, 0, 12, NOW_MS) is NotLeaderOrFollower
    refusals.add(9, 0, 5, NotEnoughReplicas, NOW_MS)
    assert refusals.before(9, 0, 6, NOW_MS) is NotEnoughReplicas
    late_ms = NOW_MS + REMEMBERED_MS + 1
    assert refusals.before(9, 0, 6, late_ms) is None
    refusals.add(9, 0, 20, NotLeaderOrFollower, late_ms)
    assert refusals.before(9, 0, 12, late_ms) is None
    assert refusals.before(9, 0, 21, late_ms) is NotLeaderOrFollower


def test_a_clock_that_went_back_ends_it_too() -> None:
    refusals = RejectedBatches()
    refusals.add(9, 0, 10, NotLeaderOrFollower, NOW_MS)
    assert refusals.before(9, 0, 11, NOW_MS - 1) is None


def test_sequences_go_on_from_zero_behind_the_last_one() -> None:
    refusals = RejectedBatches()
    refusals.add(9, 0, SEQUENCE_MAX, NotLeaderOrFollower, NOW_MS)
    assert refusals.before(9, 0, 0, NOW_MS) is NotLeaderOrFollower
    assert refusals.before(9, 0, SEQUENCE_MAX - 1, NOW_MS) is None


def test_a_producer_whose_batch_was_taken_is_forgotten() -> None:
    refusals = RejectedBatches()
    refusals.add(9, 0, 10, NotLeaderOrFollower, NOW_MS)
    refusals.add(8, 0, 10, NotLeaderOrFollower, NOW_MS)
    refusals.forget(9)
    refusals.forget(7)
    assert refusals.before(9, 0, 11, NOW_MS) is None
    assert refusals.before(8, 0, 11, NOW_MS) is NotLeaderOrFollower
    assert len(refusals) == 1


def test_there_are_never_more_than_so_many() -> None:
    refusals = RejectedBatches()
    for producer_id in range(PRODUCERS_MAX + 1):
        refusals.add(producer_id, 0, 0, NotLeaderOrFollower, NOW_MS)
    assert len(refusals) == 1
    assert refusals.before(PRODUCERS_MAX, 0, 1, NOW_MS) is NotLeaderOrFollower
