"""Bytes become the records a program may see, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.client.consumer.fetched import CompletedFetch
from millbeck.kernel.errors import CorruptMessage, InvalidRecord
from millbeck.records import batch
from millbeck.records.compression import Codec
from millbeck.records.control import EndTransaction, marker_batch
from millbeck.records.record import Record


def made(base_offset: int, *values: bytes, **more: Any) -> bytes:
    return batch.build([Record(-1, 1, None, value) for value in values], base_offset=base_offset, **more)


def written(base_offset: int, producer_id: int, *values: bytes) -> bytes:
    return made(base_offset, *values, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)


def marker(offset: int, producer_id: int, *, is_commit: bool) -> bytes:
    end = EndTransaction(committed=is_commit, coordinator_epoch=0)
    return marker_batch(end, producer_id=producer_id, producer_epoch=0, timestamp=1, base_offset=offset)


def read_all(data: bytes, start: int = 0, **more: Any) -> list[tuple[int, bytes | None]]:
    chunk = CompletedFetch(data, start, **more)
    found = []
    while (records := chunk.read()) is not None:
        found += [(record.offset, record.value) for record in records]
    return found


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
def test_batches_are_read_in_order(codec: Codec) -> None:
    data = made(5, b"a", b"b", codec=codec) + made(7, b"c", codec=codec)
    assert read_all(data, 5) == [(5, b"a"), (6, b"b"), (7, b"c")]


def test_what_lies_before_the_position_is_left_out() -> None:
    data = made(0, b"a", b"b") + made(2, b"c", b"d")
    assert read_all(data, 3) == [(3, b"d")]
    assert read_all(data, 1) == [(1, b"b"), (2, b"c"), (3, b"d")]


def test_the_position_moves_behind_each_batch_even_where_records_are_gone() -> None:
    compacted = batch.build([Record(4, 1, b"k", b"v")], base_offset=2, last_offset=9, partition_leader_epoch=6)
    chunk = CompletedFetch(compacted, 2)
    records = chunk.read()
    assert records is not None
    assert [record.offset for record in records] == [4]
    assert (chunk.next_offset, chunk.leader_epoch) == (10, 6)
    assert chunk.read() is None


def test_an_empty_batch_moves_the_position() -> None:
    empty = batch.build([], base_offset=2, last_offset=9)
    chunk = CompletedFetch(empty, 2)
    assert chunk.read() == []
    assert chunk.next_offset == 10


@pytest.mark.parametrize("cut", [1, 30, 60, 65])
def test_a_batch_cut_off_at_the_end_is_left_for_the_next_fetch(cut: int) -> None:
    data = made(0, b"a") + made(1, b"b")
    shortened = data[:-cut]
    assert read_all(shortened) == [(0, b"a")]
    assert CompletedFetch(shortened, 0).skip_to_end() == 1


def test_where_the_next_fetch_begins() -> None:
    data = made(5, b"a", b"b") + made(7, b"c")
    assert CompletedFetch(data, 6).skip_to_end() == 8
    assert CompletedFetch(b"", 6).skip_to_end() == 6
    assert CompletedFetch(made(5, b"a"), 6).skip_to_end() == 6


def test_control_records_are_never_seen() -> None:
    data = written(0, 1, b"a") + marker(1, 1, is_commit=True) + made(2, b"b")
    assert read_all(data) == [(0, b"a"), (2, b"b")]


def test_aborted_records_are_seen_unless_committed_ones_were_asked_for() -> None:
    data = written(0, 1, b"a") + marker(1, 1, is_commit=False)
    assert read_all(data) == [(0, b"a")]
    assert read_all(data, aborted=[(0, 1)]) == []


def test_only_the_aborted_producer_s_records_are_hidden_and_only_until_its_marker() -> None:
    data = b"".join(
        (
            written(0, 1, b"aborted"),
            written(1, 2, b"committed"),
            made(2, b"plain"),
            written(3, 1, b"aborted too"),
            marker(4, 1, is_commit=False),
            written(5, 1, b"next transaction"),
            marker(6, 2, is_commit=True),
            marker(7, 1, is_commit=True),
        )
    )
    assert [value for _, value in read_all(data, aborted=[(0, 1)])] == [b"committed", b"plain", b"next transaction"]


def test_a_transaction_aborted_later_hides_from_its_first_offset_on() -> None:
    data = written(0, 1, b"good") + marker(1, 1, is_commit=True) + written(2, 1, b"bad") + written(3, 2, b"fine")
    assert [value for _, value in read_all(data, aborted=[(2, 1)])] == [b"good", b"fine"]


def test_a_marker_before_the_position_still_ends_its_transaction() -> None:
    data = written(0, 1, b"bad") + marker(1, 1, is_commit=False) + written(2, 1, b"good")
    assert read_all(data, 2, aborted=[(0, 1)]) == [(2, b"good")]


def test_a_wrong_checksum_is_found_unless_nobody_looks() -> None:
    data = bytearray(made(0, b"abc"))
    data[-3] ^= 0xFF
    with pytest.raises(CorruptMessage, match="checksum"):
        read_all(bytes(data))
    assert read_all(bytes(data), checks_crcs=False) != []


def test_nothing_behind_a_bad_batch_is_read() -> None:
    bad = bytearray(made(1, b"b"))
    bad[-2] ^= 0xFF
    chunk = CompletedFetch(made(0, b"a") + bytes(bad) + made(2, b"c"), 0)
    assert chunk.read() is not None
    for _ in range(2):
        with pytest.raises(CorruptMessage):
            chunk.read()
    assert chunk.next_offset == 1


def test_a_decompression_bomb_is_an_error() -> None:
    data = made(0, b"\0" * 500_000, codec=Codec.GZIP)
    with pytest.raises(InvalidRecord):
        read_all(data, limit_bytes=1000)
