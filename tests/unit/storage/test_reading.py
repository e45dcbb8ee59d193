"""Whole batches, at least one of them, and nothing beyond the bound: at the tail and through the index."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import KafkaStorageError, OffsetOutOfRange
from millbeck.storage.segment import TAIL_BATCHES, ColdRead
from tests.log_steps import apply_retention


@pytest.fixture(params=["tail", "index"])
def filled(world: Any, request: pytest.FixtureRequest) -> Any:
    """Ten batches of three records each in one segment, found from memory or through the index."""
    world.configure(internal_segment_bytes="100000", index_interval_bytes="150")
    for _ in range(10):
        world.append(world.batch(3))
    if request.param == "index":
        world.log.active.clear_recent_batches()
    return world


def test_a_read_begins_with_the_batch_that_holds_the_offset(filled: Any) -> None:
    assert filled.read(0)[0] == 0
    assert filled.read(4)[0] == 3
    assert filled.read(5) == [3, 6, 9, 12, 15, 18, 21, 24, 27]
    assert filled.read(29) == [27]


def test_it_ends_with_a_whole_batch_within_the_limit(filled: Any) -> None:
    size = len(filled.batch(3))
    assert filled.read(0, 2 * size) == [0, 3]
    assert filled.read(6, size) == [6]
    found = filled.read(0, 5 * size + 10)
    assert found == [0, 3, 6, 9, 12][: len(found)]
    assert len(found) >= 3


def test_the_first_batch_comes_even_when_it_is_too_large(filled: Any) -> None:
    assert filled.read(4, 10) == [3]
    assert filled.read(27, 0) == [27]
    assert filled.read(4, 10, at_least_one=False) == []


def test_nothing_at_or_beyond_the_bound_is_returned(filled: Any) -> None:
    assert filled.read(0, upto=9) == [0, 3, 6]
    assert filled.read(0, upto=10) == [0, 3, 6]
    assert filled.read(9, upto=10) == []
    assert filled.read(9, upto=9) == []
    assert filled.read(27, 1, upto=30) == [27]


def test_at_the_end_there_is_nothing_and_beyond_it_an_error(filled: Any) -> None:
    assert filled.read(30) == []
    for offset in (31, -1):
        with pytest.raises(OffsetOutOfRange):
            filled.read(offset)


def test_a_slice_names_a_bound_that_its_offsets_do_not_reach(filled: Any) -> None:
    size = len(filled.batch(3))
    for limit in (1, size, 3 * size, 100 * size):
        found = filled.log.read(3, size_bytes_max=limit, upto_offset=30)
        last = 3 * (found.size // size) + 2
        assert last < found.upper_offset <= 30
        found.release()


def test_every_old_offset_is_found_in_every_segment(world: Any) -> None:
    world.append_many(40, records=2)
    log = world.log
    assert len(log.segments) > 3
    for offset in range(log.end_offset):
        assert world.read(offset)[0] == offset - offset % 2
    world.close_and_reopen()
    for offset in range(log.end_offset):
        assert world.read(offset)[0] == offset - offset % 2


def test_a_read_stops_at_the_end_of_a_segment(world: Any) -> None:
    world.configure(internal_segment_bytes=str(2 * len(world.batch())))
    world.append_many(5)
    assert world.read(0) == [0, 1]
    assert world.read(3) == [3]


def test_gaps_lead_to_the_next_batch_wherever_it_is(world: Any) -> None:
    for offset in (0, 10, 20):
        batch = bytearray(world.batch())
        batch[0:8] = offset.to_bytes(8, "big")
        world.log.append_as_follower(bytes(batch), leader_epoch=0, now_ms=0)
        world.log.roll(0)
    assert world.read(1) == [10]
    assert world.read(11) == [20]
    assert world.read(11, upto=20) == []
    assert world.read(1, upto=11) == [10]
    world.append()
    assert world.read(20) == [20]
    assert world.read(21) == [21]


def test_the_tail_forgets_what_is_old_and_goes_on(world: Any) -> None:
    world.configure(internal_segment_bytes="10000000")
    total = 2 * TAIL_BATCHES + 100
    world.append_many(total)
    assert len(world.log.active.tail_positions) <= 2 * TAIL_BATCHES
    for offset in (0, 1, 99, 100, 101, TAIL_BATCHES + 99, TAIL_BATCHES + 101, total - 1):
        assert world.read(offset)[0] == offset


def test_the_tail_is_read_without_touching_the_file(world: Any) -> None:
    world.append_many(5)
    world.disk.faults.read_error = 1.0
    found = world.log.read(2, size_bytes_max=1000, upto_offset=5)
    assert found.size == 3 * len(world.batch())
    found.release()


def test_a_reader_keeps_its_file_when_the_segment_is_deleted(world: Any) -> None:
    world.configure(retention_bytes="0")
    world.append_many(30)
    expected = world.read_file("00000000000000000000.log")
    found = world.log.read(0, size_bytes_max=10_000, upto_offset=30)
    world.run_all(apply_retention(world.log, world.clock_ms))
    assert world.log.log_start_offset == 30
    assert world.content(found) == expected[: found.size]


def test_a_cold_read_declines_and_names_the_job(world: Any) -> None:
    world.append_many(30)
    world.log.flush()
    world.log.environment.index_cache.limit_bytes = 1
    world.disk.faults.cold_read = 1.0
    with pytest.raises(ColdRead) as cold:
        world.log.read(0, size_bytes_max=10, upto_offset=30, nowait=True)
    cold.value.job()
    cold.value.release()
    world.disk.faults.cold_read = 0.0
    found = world.log.read(0, size_bytes_max=10, upto_offset=30, nowait=True)
    found.release()
    assert found.position == 0
    assert all(segment.handle.leases == 0 for segment in world.log.segments)


def test_a_damaged_index_is_rebuilt_by_the_reader_that_meets_it(world: Any) -> None:
    world.append_many(30)
    world.close_and_reopen()
    entries = world.log.segments[0].offset_index().entries()
    world.log.segments[0].drop_indexes()
    wrong = b"".join(
        (offset + 1).to_bytes(4, "big") + (position - 3).to_bytes(4, "big") for offset, position in entries
    )
    world.overwrite("00000000000000000000.index", 0, wrong)
    for offset in range(10):
        assert world.read(offset)[0] == offset
    assert world.log.segments[0].offset_index().entries() == entries
    assert not world.log.is_offline


def test_damaged_batches_take_the_log_offline_with_file_and_position(world: Any) -> None:
    world.configure(index_interval_bytes="100000", internal_segment_bytes="100000")
    world.append_many(5)
    world.close_and_reopen()
    size = len(world.batch())
    world.overwrite("00000000000000000000.log", 2 * size, bytes(30))
    with pytest.raises(KafkaStorageError, match=rf"00000000000000000000.log is corrupt at position {2 * size}"):
        world.read(3)
    with pytest.raises(KafkaStorageError, match="offline"):
        world.append()
    assert world.failures == []


def test_an_error_of_the_disk_refuses_the_read_only(world: Any) -> None:
    world.append_many(30)
    world.close_and_reopen()
    world.disk.faults.read_error = 1.0
    with pytest.raises(KafkaStorageError):
        world.read(0)
    world.disk.faults.read_error = 0.0
    assert world.read(0)[0] == 0


def test_aborted_transactions_are_found_in_the_segments_of_their_markers(world: Any) -> None:
    for producer_id in (1, 2, 3):
        world.append(world.batch(producer_id=producer_id, transactional=True))
    for producer_id in (1, 2, 3):
        world.log.roll(0)
        world.end_transaction(producer_id, committed=producer_id == 2)
    found = world.log.aborted_transactions(0, 10)
    assert [(one.producer_id, one.first_offset, one.last_offset) for one in found] == [(1, 0, 3), (3, 2, 5)]
    assert [one.producer_id for one in world.log.aborted_transactions(4, 10)] == [3]
    assert [one.producer_id for one in world.log.aborted_transactions(0, 2)] == [1]
    assert world.log.aborted_transactions(6, 10) == []


def test_a_damaged_transaction_index_is_rebuilt(world: Any) -> None:
    world.append(world.batch(producer_id=1, transactional=True))
    world.log.roll(0)
    world.end_transaction(1, committed=False)
    world.log.roll(0)
    world.close_and_reopen()
    assert world.log.segments[1].path(".txnindex").endswith("00000000000000000001.txnindex")
    world.overwrite("00000000000000000001.txnindex", 0, b"\x7f\x7f")
    assert world.log.aborted_transactions(0, 10) == [(1, 0, 1, 2)]
