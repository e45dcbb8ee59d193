"""Columns of a fetched chunk hold what the plain reader shows of it."""

from __future__ import annotations

from struct import iter_unpack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.client.consumer import fetched_columns
from millbeck.client.consumer.fetched import CompletedFetch
from millbeck.client.consumer.fetched_columns import Columns, CompletedColumnFetch
from millbeck.kernel.errors import CorruptMessage, InvalidRecord
from millbeck.records import batch
from millbeck.records.compression import Codec
from millbeck.records.control import EndTransaction, marker_batch
from millbeck.records.record import Record
from tests.unit.records.strategies import records

Row = tuple[int, int, bytes | None, bytes | None]


def rows_of(columns: Columns) -> list[Row]:
    found: list[Row] = []
    for key, key_size, value, value_size, offset, timestamp in iter_unpack("<6q", columns.rows):
        key_bytes = None if key_size < 0 else columns.payload[key : key + key_size]
        value_bytes = None if value_size < 0 else columns.payload[value : value + value_size]
        found.append((offset, timestamp, key_bytes, value_bytes))
    assert len(found) == columns.row_count
    return found


def read(chunk: CompletedColumnFetch) -> list[Row]:
    return [row for columns in chunk.columns() for row in rows_of(columns)]


def decoded_one_by_one(data: bytes, start: int, end: int, aborted: list[tuple[int, int]]) -> list[Row]:
    chunk = CompletedFetch(data, start, aborted=aborted)
    found: list[Row] = []
    while (taken := chunk.read()) is not None:
        found += [
            (record.offset, record.timestamp, record.key, record.value) for record in taken if record.offset < end
        ]
    return found


@st.composite
def logs(draw: st.DrawFn) -> tuple[bytes, int, list[tuple[int, int]]]:
    """Some batches of several codecs and producers, with transactions that end one way or the other."""
    data, offset, opened = b"", draw(st.integers(0, 50)), dict[int, int]()
    aborted: list[tuple[int, int]] = []
    for _ in range(draw(st.integers(1, 6))):
        producer = draw(st.sampled_from([-1, 7, 8]))
        if producer in opened and draw(st.booleans()):
            is_abort = draw(st.booleans())
            if is_abort:
                aborted.append((opened[producer], producer))
            del opened[producer]
            marker = EndTransaction(committed=not is_abort, coordinator_epoch=0)
            data += marker_batch(marker, base_offset=offset, timestamp=5, producer_id=producer, producer_epoch=0)
            offset += 1
        else:
            if producer >= 0:
                opened.setdefault(producer, offset)
            built = batch.build(
                draw(records(max_size=4)),
                base_offset=offset,
                codec=draw(st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4, Codec.GZIP])),
                append_timestamp=draw(st.sampled_from([None, None, 99])),
                producer_id=producer,
                producer_epoch=-1 if producer < 0 else 0,
                base_sequence=-1 if producer < 0 else 0,
                is_transactional=producer >= 0,
            )
            data += built
            offset = batch.read_header(built).next_offset
        offset += draw(st.sampled_from([0, 0, 3]))
    return data, offset, aborted


@given(logs(), st.integers(0, 70), st.integers(0, 70), st.integers(0, 80))
@settings(max_examples=150, deadline=None)
def test_they_hold_what_the_plain_reader_shows(
    log: tuple[bytes, int, list[tuple[int, int]]], start: int, end: int, cut: int
) -> None:
    data, _, aborted = log
    data = data[: len(data) - cut] if cut < len(data) else data
    assert read(CompletedColumnFetch(data, start, end, aborted=aborted)) == decoded_one_by_one(
        data, start, end, aborted
    )


def test_batches_that_differ_in_kind_are_told_apart() -> None:
    one = batch.build([Record(-1, 5, None, b"a")])
    two = batch.build([Record(-1, 5, None, b"b")], base_offset=1, append_timestamp=70)
    three = batch.build([Record(-1, 5, None, b"c")], base_offset=2, append_timestamp=71)
    found = list(CompletedColumnFetch(one + two + three, 0, 9).columns())
    assert [(columns.timestamp_type, columns.row_count) for columns in found] == [(0, 1), (1, 2)]


def test_uncompressed_bytes_are_not_copied() -> None:
    data = batch.build([Record(-1, 5, None, b"a")]) * 2
    (columns,) = CompletedColumnFetch(data, 0, 9).columns()
    assert columns.payload is data


def test_what_is_decompressed_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_columns, "JOINED_BYTES_MAX", 100)
    data = b"".join(
        batch.build([Record(-1, 5, None, bytes(60))], base_offset=offset, codec=Codec.LZ4) for offset in range(6)
    )
    found = list(CompletedColumnFetch(data, 0, 9).columns())
    assert [columns.row_count for columns in found] == [2, 2, 2]
    assert [row[0] for columns in found for row in rows_of(columns)] == list(range(6))


def test_headers_come_only_when_wanted() -> None:
    data = batch.build([Record(-1, 5, None, b"a", (("name", b"x"), ("other", None)))])
    (without,) = CompletedColumnFetch(data, 0, 9).columns()
    (having,) = CompletedColumnFetch(data, 0, 9, with_headers=True).columns()
    assert (without.header_count, without.header_counts) == (0, b"")
    assert having.header_count == 2
    name, name_size, _, _ = next(iter_unpack("<4q", having.header_slots))
    assert having.payload[name : name + name_size] == b"name"


def test_bad_bytes_raise() -> None:
    good = batch.build([Record(-1, 5, None, b"abcdefgh")])
    flipped = good[:-3] + bytes([good[-3] ^ 1]) + good[-2:]
    with pytest.raises(CorruptMessage):
        read(CompletedColumnFetch(flipped, 0, 9))
    assert len(read(CompletedColumnFetch(flipped, 0, 9, checks_crcs=False))) == 1
    broken = good[:61] + b"\x7f" + good[62:]
    with pytest.raises(InvalidRecord):
        read(CompletedColumnFetch(broken, 0, 9, checks_crcs=False))
