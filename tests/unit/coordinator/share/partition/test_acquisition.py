from __future__ import annotations

from millbeck.coordinator.share.partition.acquisition import Acquired, FetchedBatch
from millbeck.coordinator.share.partition.share_partition import Acknowledgement, SharePartition, SharePartitionSettings

RELEASE = 2


def _take(
    partition: SharePartition,
    *found: tuple[int, int],
    member: str = "a",
    max_records: int = 500,
    is_strict: bool = False,
    batch_size: int = 500,
    without_records: tuple[tuple[int, int], ...] = (),
) -> list[tuple[int, int, int]]:
    batches = sorted(
        [FetchedBatch(*each, True) for each in found] + [FetchedBatch(*each, False) for each in without_records]
    )
    acquired = partition.acquire(
        member,
        batches,
        fetch_offset=partition.next_fetch_offset(),
        max_records=max_records,
        batch_size=batch_size,
        is_strict=is_strict,
        now_ms=0,
    )
    return [(first, last, count) for first, last, count in acquired]


def _give_back(partition: SharePartition, first: int, last: int) -> None:
    change = partition.acknowledge("a", [Acknowledgement(first, last, [RELEASE])], now_ms=0)
    partition.written(change)


def test_whole_batches_are_given_even_when_the_last_is_too_much() -> None:
    partition = SharePartition(SharePartitionSettings(), 0)
    assert _take(partition, (0, 4), (5, 9), (10, 14), max_records=6) == [(0, 9, 1)]
    assert _take(partition, (10, 14)) == [(10, 14, 1)]


def test_a_strict_limit_cuts_a_batch() -> None:
    partition = SharePartition(SharePartitionSettings(), 0)
    assert _take(partition, (0, 9), max_records=3, is_strict=True) == [(0, 2, 1)]
    assert partition.next_fetch_offset() == 3
    assert _take(partition, (0, 9), max_records=3, is_strict=True) == [(3, 5, 1)]


def test_acquired_batches_are_as_large_as_asked_for() -> None:
    partition = SharePartition(SharePartitionSettings(), 0)
    assert _take(partition, (0, 4), (5, 9), (10, 14), (15, 16), batch_size=8) == [(0, 9, 1), (10, 16, 1)]


def test_what_others_hold_is_not_given() -> None:
    partition = SharePartition(SharePartitionSettings(), 0)
    _take(partition, (0, 9))
    _give_back(partition, 2, 3)
    _give_back(partition, 6, 6)
    assert _take(partition, (0, 9), (10, 11), member="b") == [(2, 3, 2), (6, 6, 2), (10, 11, 1)]
    assert _take(partition, (0, 9), (10, 11), member="c") == []


def test_holes_and_batches_without_records_are_passed_over() -> None:
    partition = SharePartition(SharePartitionSettings(), 0)
    assert _take(partition, (3, 4), (8, 9), without_records=((5, 6),)) == [(3, 4, 1), (8, 9, 1)]
    assert partition.start_offset == 3
    assert partition.final_count == 3
    assert partition.has_passed_over


def test_the_window_does_not_grow_beyond_the_locks_there_may_be() -> None:
    partition = SharePartition(SharePartitionSettings(record_locks_max=10), 0)
    assert _take(partition, (0, 5), (6, 15), (16, 20)) == [(0, 15, 1)]
    assert not partition.may_acquire()
    assert _take(partition, (16, 20)) == []
    strict = SharePartition(SharePartitionSettings(record_locks_max=10), 0)
    assert _take(strict, (0, 30), is_strict=True) == [(0, 9, 1)]


def test_what_was_given_often_is_given_in_smaller_parts_and_at_last_alone() -> None:
    partition = SharePartition(SharePartitionSettings(delivery_count_limit=5), 0)
    for count in (1, 2, 3):
        assert _take(partition, (0, 7)) == [(0, 7, count)]
        _give_back(partition, 0, 7)
    assert _take(partition, (0, 7), (8, 9)) == [(0, 3, 4)]
    _give_back(partition, 0, 3)
    assert _take(partition, (0, 7)) == [(0, 0, 5)]
    _give_back(partition, 0, 0)
    assert partition.start_offset == 1, "given back after its last delivery: over"
    assert _take(partition, (0, 7)) == [(1, 1, 5)]


def test_a_last_delivery_does_not_ride_with_others() -> None:
    partition = SharePartition(SharePartitionSettings(delivery_count_limit=3), 0)
    _take(partition, (0, 3))
    _give_back(partition, 2, 2)
    assert _take(partition, (0, 3)) == [(2, 2, 2)]
    _give_back(partition, 2, 2)
    _give_back(partition, 0, 0)
    assert _take(partition, (0, 3)) == [(0, 0, 2)]
    assert _take(partition, (0, 3)) == [(2, 2, 3)]


def test_a_limit_of_two_spares_nothing() -> None:
    partition = SharePartition(SharePartitionSettings(delivery_count_limit=2), 0)
    _take(partition, (0, 7))
    _give_back(partition, 0, 7)
    assert _take(partition, (0, 7)) == [(0, 7, 2)]


def test_a_limit_that_was_lowered_counts_at_the_next_delivery() -> None:
    partition = SharePartition(SharePartitionSettings(delivery_count_limit=5), 0)
    for _ in range(2):
        _take(partition, (0, 1))
        _give_back(partition, 0, 1)
    partition.settings.delivery_count_limit = 2
    assert _take(partition, (0, 1), (2, 3)) == [(2, 3, 1)]
    assert partition.start_offset == 2


def test_acquired_is_what_the_reply_says() -> None:
    assert Acquired(1, 2, 3) == (1, 2, 3)
