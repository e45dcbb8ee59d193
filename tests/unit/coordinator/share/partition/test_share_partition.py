from __future__ import annotations

import pytest

from millbeck.coordinator.share.partition.acquisition import FetchedBatch
from millbeck.coordinator.share.partition.share_partition import Acknowledgement, SharePartition, SharePartitionSettings
from millbeck.coordinator.share.states import RecordState, StateBatch
from millbeck.kernel.errors import InvalidRecordState, InvalidRequest

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
LOCK_MS = 30_000


def _partition(last: int = 9, member: str = "a", now_ms: int = 0) -> SharePartition:
    """One member holds everything."""
    partition = SharePartition(SharePartitionSettings(lock_duration_ms=LOCK_MS), 0)
    _take(partition, 0, last, member, now_ms)
    return partition


def _take(partition: SharePartition, first: int, last: int, member: str = "a", now_ms: int = 0) -> int:
    acquired = partition.acquire(
        member,
        [FetchedBatch(first, last, True)],
        fetch_offset=partition.next_fetch_offset(),
        max_records=500,
        batch_size=500,
        is_strict=False,
        now_ms=now_ms,
    )
    return sum(each.last_offset - each.first_offset + 1 for each in acquired)


def _acknowledge(
    partition: SharePartition, first: int, last: int, *types: int, member: str = "a", now_ms: int = 0
) -> bool:
    change = partition.acknowledge(member, [Acknowledgement(first, last, types)], now_ms=now_ms)
    return partition.written(change)


def _states(partition: SharePartition) -> list[tuple[int, int, str]]:
    return [(run.first, run.last, run.state.name) for run in partition.window.runs]


def test_the_start_passes_what_is_accepted_rejected_or_a_gap() -> None:
    partition = _partition()
    _acknowledge(partition, 1, 3, ACCEPT, REJECT, GAP)
    assert partition.start_offset == 0
    _acknowledge(partition, 0, 0, ACCEPT)
    assert partition.start_offset == 4
    assert partition.final_count == 0
    assert partition.acquired_count == 6


def test_what_is_released_is_given_out_again() -> None:
    partition = _partition()
    assert _acknowledge(partition, 4, 5, RELEASE)
    assert partition.next_fetch_offset() == 4
    assert _take(partition, 0, 9, "b") == 2
    assert partition.held_by("b")


def test_nothing_counts_before_it_is_stored() -> None:
    partition = _partition()
    change = partition.acknowledge("a", [Acknowledgement(0, 4, [ACCEPT])], now_ms=0)
    assert partition.start_offset == 0
    with pytest.raises(InvalidRecordState):
        partition.acknowledge("a", [Acknowledgement(0, 0, [RELEASE])], now_ms=0)
    assert not partition.refused(change)
    _acknowledge(partition, 0, 4, RELEASE)
    assert partition.next_fetch_offset() == 0


def test_what_another_holds_cannot_be_settled() -> None:
    partition = _partition()
    with pytest.raises(InvalidRecordState):
        _acknowledge(partition, 0, 0, ACCEPT, member="b")


def test_a_refusal_leaves_everything_as_it_was() -> None:
    partition = _partition()
    _acknowledge(partition, 9, 9, ACCEPT)
    before = _states(partition)
    with pytest.raises(InvalidRecordState):
        partition.acknowledge("a", [Acknowledgement(0, 2, [ACCEPT]), Acknowledgement(8, 9, [ACCEPT])], now_ms=0)
    assert _states(partition) == before
    assert partition.release("a").batches == [StateBatch(0, 8, RecordState.AVAILABLE, 1)]


def test_what_is_final_stays() -> None:
    partition = _partition()
    _acknowledge(partition, 5, 5, ACCEPT)
    with pytest.raises(InvalidRecordState):
        _acknowledge(partition, 5, 5, RELEASE)


def test_beyond_the_end_there_is_nothing_to_settle() -> None:
    with pytest.raises(InvalidRequest):
        _acknowledge(_partition(), 9, 10, ACCEPT)
    with pytest.raises(InvalidRequest):
        _acknowledge(_partition(), 10, 10, ACCEPT)


def test_what_is_below_the_start_is_over_and_nobody_is_told() -> None:
    partition = _partition()
    _acknowledge(partition, 0, 4, ACCEPT)
    assert not partition.acknowledge("b", [Acknowledgement(0, 4, [ACCEPT])], now_ms=0)
    _acknowledge(partition, 3, 5, ACCEPT)
    assert partition.start_offset == 6


def test_a_lock_runs_out() -> None:
    partition = _partition()
    assert partition.next_deadline_ms() == LOCK_MS
    assert not partition.expire(LOCK_MS - 1)
    change = partition.expire(LOCK_MS)
    assert change.batches == [StateBatch(0, 9, RecordState.AVAILABLE, 1)]
    assert change.is_applied
    assert partition.next_fetch_offset() == 0
    assert partition.next_deadline_ms() is None
    with pytest.raises(InvalidRecordState):
        _acknowledge(partition, 0, 0, ACCEPT)


def test_a_renewed_lock_lasts_longer() -> None:
    partition = _partition()
    _acknowledge(partition, 3, 4, RENEW, now_ms=10_000)
    assert partition.expire(LOCK_MS).batches == [
        StateBatch(0, 2, RecordState.AVAILABLE, 1),
        StateBatch(5, 9, RecordState.AVAILABLE, 1),
    ]
    assert partition.next_deadline_ms() == LOCK_MS + 10_000
    assert _acknowledge(partition, 3, 4, ACCEPT, now_ms=LOCK_MS + 1) is False


def test_renewing_can_be_off() -> None:
    partition = _partition()
    partition.settings.is_renewing_enabled = False
    with pytest.raises(InvalidRecordState):
        _acknowledge(partition, 0, 0, RENEW)


def test_a_lock_that_runs_out_waits_for_what_was_said_in_time() -> None:
    partition = _partition()
    change = partition.acknowledge("a", [Acknowledgement(0, 4, [ACCEPT])], now_ms=0)
    assert partition.expire(LOCK_MS).batches == [StateBatch(5, 9, RecordState.AVAILABLE, 1)]
    assert partition.refused(change).batches == [StateBatch(0, 4, RecordState.AVAILABLE, 1)]
    assert partition.next_fetch_offset() == 0


def test_after_the_last_delivery_it_is_given_up() -> None:
    partition = SharePartition(SharePartitionSettings(delivery_count_limit=2, lock_duration_ms=LOCK_MS), 0)
    _take(partition, 0, 1)
    partition.expire(LOCK_MS)
    _take(partition, 0, 1, now_ms=LOCK_MS)
    assert partition.expire(2 * LOCK_MS).batches == [StateBatch(0, 1, RecordState.ARCHIVED, 2)]
    assert partition.start_offset == 2


def test_a_member_that_goes_gives_back_what_it_holds() -> None:
    partition = _partition()
    _take(partition, 10, 19, "b")
    _acknowledge(partition, 5, 5, ACCEPT)
    change = partition.release("a")
    assert change.batches == [
        StateBatch(0, 4, RecordState.AVAILABLE, 1),
        StateBatch(6, 9, RecordState.AVAILABLE, 1),
    ]
    assert partition.written(change)
    assert partition.held_by("b")
    assert not partition.held_by("a")


def test_a_release_and_the_expiry_of_the_same_lock_count_once() -> None:
    partition = _partition()
    change = partition.release("a")
    # The lock expires while the release is on its way to the share coordinator.
    assert not partition.expire(LOCK_MS)
    assert partition.written(change)
    assert partition.available_count == 10
    assert _take(partition, 0, 9, "b", now_ms=LOCK_MS) == 10
    assert [run.delivery_count for run in partition.window.runs] == [2]


def test_the_expiry_of_a_released_lock_leaves_the_next_holder_alone() -> None:
    partition = _partition()
    assert partition.written(partition.release("a"))
    assert _take(partition, 0, 9, "b", now_ms=LOCK_MS - 1) == 10
    assert not partition.expire(LOCK_MS)
    assert partition.held_by("b")
    assert partition.next_deadline_ms() == 2 * LOCK_MS - 1


def test_a_write_says_how_it_will_be() -> None:
    partition = _partition()
    first = partition.acknowledge("a", [Acknowledgement(0, 1, [ACCEPT])], now_ms=0)
    second = partition.acknowledge("a", [Acknowledgement(2, 2, [ACCEPT]), Acknowledgement(5, 6, [REJECT])], now_ms=0)
    assert partition.build_write([first]) == (2, 0, [])
    assert partition.build_write([second]) == (
        0,
        3,
        [StateBatch(2, 2, RecordState.ACKNOWLEDGED, 1), StateBatch(5, 6, RecordState.ARCHIVED, 1)],
    )
    assert partition.build_write([first, second]) == (3, 2, [StateBatch(5, 6, RecordState.ARCHIVED, 1)])


def test_the_next_leader_begins_with_what_was_stored() -> None:
    batches = [
        StateBatch(3, 4, RecordState.ACKNOWLEDGED, 1),
        StateBatch(5, 5, RecordState.AVAILABLE, 2),
        StateBatch(8, 9, RecordState.ARCHIVED, 5),
    ]
    partition = SharePartition(SharePartitionSettings(), 3, batches)
    assert partition.start_offset == 5
    assert partition.next_fetch_offset() == 5
    assert _states(partition) == [(5, 5, "AVAILABLE"), (6, 7, "AVAILABLE"), (8, 9, "ARCHIVED")]
    assert (partition.available_count, partition.final_count) == (3, 2)


def test_what_is_gone_from_the_log_is_gone() -> None:
    partition = _partition()
    assert partition.log_start_moved(4)
    assert not partition.log_start_moved(4)
    assert (partition.start_offset, partition.acquired_count) == (4, 6)
    assert partition.log_start_moved(100)
    assert (partition.start_offset, partition.end_offset, partition.acquired_count) == (100, 99, 0)
    assert not partition.acknowledge("a", [Acknowledgement(4, 9, [ACCEPT])], now_ms=0)


def test_a_change_may_be_answered_after_its_records_are_gone() -> None:
    partition = _partition()
    change = partition.acknowledge("a", [Acknowledgement(0, 5, [RELEASE])], now_ms=0)
    partition.log_start_moved(4)
    assert partition.written(change)
    assert partition.available_count == 2


def test_types_are_told_apart_offset_by_offset() -> None:
    said = Acknowledgement(5, 9, [ACCEPT, ACCEPT, REJECT, RELEASE, RELEASE])
    assert list(said.segments(0)) == [(5, 6, ACCEPT), (7, 7, REJECT), (8, 9, RELEASE)]
    assert list(said.segments(6)) == [(6, 6, ACCEPT), (7, 7, REJECT), (8, 9, RELEASE)]
    assert list(Acknowledgement(5, 9, [ACCEPT]).segments(10)) == []
