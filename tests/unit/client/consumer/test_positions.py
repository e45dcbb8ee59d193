"""Where a consumer stands, and what a seek, a reset or a new leader does to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.client.consumer.fetched_columns import CompletedColumnFetch
from millbeck.client.consumer.positions import FetchState, SubscriptionState, TopicPartitionState
from millbeck.kernel.errors import CorruptMessage
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.record import Record

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def made(base_offset: int, count: int, **more: Any) -> bytes:
    return batch.build([Record(-1, 1, None, b"v") for _ in range(count)], base_offset=base_offset, **more)


def standing(offset: int = 0) -> TopicPartitionState:
    state = TopicPartitionState(A0, FetchState.RESET)
    state.seek(offset)
    return state


def receive(state: TopicPartitionState, data: bytes) -> None:
    chunk = CompletedColumnFetch(data, state.fetch_offset, 1 << 62)
    state.received(chunk, chunk.skip_to_end())


def offsets(records: list[Record]) -> list[int]:
    return [record.offset for record in records]


def test_a_new_partition_has_no_position() -> None:
    state = TopicPartitionState(A0, FetchState.COMMITTED_OFFSET)
    assert not state.has_position
    assert not state.is_fetchable
    state.seek(5, 2)
    assert (state.position, state.fetch_offset, state.offset_epoch) == (5, 5, 2)
    assert state.is_fetchable


def test_records_are_taken_in_order_and_the_position_follows() -> None:
    state = standing()
    receive(state, made(0, 3) + made(3, 2, partition_leader_epoch=4))
    receive(state, made(5, 2))
    assert state.fetch_offset == 7
    assert offsets(state.take(2)) == [0, 1]
    assert state.position == 2
    assert offsets(state.take(2)) == [2, 3]
    assert (state.position, state.offset_epoch) == (4, 4)
    assert offsets(state.take(100)) == [4, 5, 6]
    assert (state.position, state.buffered_bytes, state.has_records) == (7, 0, False)
    assert state.take(10) == []


def test_the_position_passes_offsets_that_are_gone() -> None:
    state = standing()
    receive(state, batch.build([Record(2, 1, None, b"v")], base_offset=0, last_offset=9) + made(10, 1))
    assert offsets(state.take(1)) == [2]
    assert state.position == 10
    empty = standing()
    receive(empty, batch.build([], base_offset=0, last_offset=9))
    assert empty.take(5) == []
    assert empty.position == 10


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), max_size=4), st.integers(1, 7))
def test_however_records_arrive_and_are_taken_each_comes_once(chunks: list[list[int]], count_max: int) -> None:
    state = standing()
    for counts in chunks:
        data = b""
        offset = state.fetch_offset
        for count in counts:
            data += made(offset, count)
            offset += count
        receive(state, data)
    seen: list[int] = []
    while records := state.take(count_max):
        assert len(records) <= count_max
        seen += offsets(records)
        assert state.position == seen[-1] + 1
    assert seen == list(range(sum(map(sum, chunks))))


def test_a_seek_throws_away_what_has_arrived_and_what_is_under_way() -> None:
    state = standing()
    receive(state, made(0, 3))
    state.take(1)
    turn = state.turn
    state.seek(50)
    assert state.turn != turn
    assert (state.position, state.fetch_offset, state.buffered_bytes) == (50, 50, 0)
    assert not state.has_records
    assert state.take(5) == []


def test_a_reset_takes_the_position_away() -> None:
    state = standing(5)
    state.reset(-2)
    assert (state.has_position, state.waits_for, state.reset_timestamp) == (False, FetchState.RESET, -2)


def test_validation_holds_fetching_until_it_is_done() -> None:
    state = standing(5)
    turn = state.turn
    state.validate()
    assert not state.is_fetchable
    assert state.turn != turn
    state.validated(3)
    assert state.is_fetchable
    assert state.validated_epoch == 3


def test_a_partition_that_waits_for_its_position_is_not_validated() -> None:
    state = TopicPartitionState(A0, FetchState.RESET)
    state.validate()
    assert state.waits_for is FetchState.RESET
    state.validated(3)
    assert state.waits_for is FetchState.RESET


def test_a_paused_partition_is_not_fetched() -> None:
    state = standing()
    state.is_paused = True
    assert not state.is_fetchable


def test_records_before_a_bad_batch_come_out_first() -> None:
    state = standing()
    bad = bytearray(made(2, 1))
    bad[-2] ^= 0xFF
    receive(state, made(0, 2) + bytes(bad))
    assert offsets(state.take(10)) == [0, 1]
    for _ in range(2):
        with pytest.raises(CorruptMessage):
            state.take(10)
    assert state.position == 2
    state.seek(3)
    assert state.take(10) == []


def test_partitions_that_stay_keep_their_position() -> None:
    positions = SubscriptionState()
    positions.assign([A0, A1], FetchState.RESET)
    first = positions.get(A0)
    assert first is not None
    first.seek(7)
    positions.assign([B0, A0], FetchState.COMMITTED_OFFSET)
    assert positions.partitions == [B0, A0]
    assert positions.get(A0) is first
    assert A1 not in positions
    second = positions.get(B0)
    assert second is not None
    assert second.waits_for is FetchState.COMMITTED_OFFSET
    assert len(positions) == 2


def test_whoever_was_served_comes_last() -> None:
    positions = SubscriptionState()
    positions.assign([A0, A1, B0], FetchState.RESET)
    positions.rotate(A0)
    positions.rotate(TopicPartition("gone", 0))
    assert positions.partitions == [A1, B0, A0]


def test_buffers_are_added_up() -> None:
    positions = SubscriptionState()
    positions.assign([A0, A1], FetchState.RESET)
    for state in positions:
        state.seek(0)
        receive(state, made(0, 1))
    assert positions.buffered_bytes == 2 * len(made(0, 1))
