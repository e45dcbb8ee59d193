"""Records as columns: the same records that the plain reader finds, and any other bytes are told as bad."""

from __future__ import annotations

from struct import iter_unpack
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millbeck.kernel.errors import InvalidRecord
from millbeck.records.record import Header, Record
from tests.unit.records.native.test_read import MALFORMED, MUTATIONS
from tests.unit.records.strategies import records

FAR = 1 << 62


def part(payload: bytes, begin: int, size: int) -> bytes | None:
    return None if size < 0 else payload[begin : begin + size]


def rows_of(payload: bytes, columns: Any) -> list[Record]:
    """The columns put together again."""
    counts = [count for (count,) in iter_unpack("<q", columns.header_counts.getvalue())]
    slots = iter(iter_unpack("<4q", columns.header_slots.getvalue()))
    found: list[Record] = []
    for index, row in enumerate(iter_unpack("<6q", columns.rows.getvalue())):
        headers: list[Header] = []
        for _ in range(counts[index] if counts else 0):
            slot = next(slots)
            name = part(payload, *slot[:2])
            assert name is not None
            headers.append((name.decode("utf-8", "surrogateescape"), part(payload, *slot[2:])))
        key, value = part(payload, *row[0:2]), part(payload, *row[2:4])
        found.append(Record(row[4], row[5], key, value, tuple(headers)))
    assert next(slots, None) is None
    assert len(found) == columns.row_count
    return found


@given(records(min_size=0), st.integers(0, 2**40), st.integers(0, 9), st.integers(0, 9), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=120)
def test_they_are_the_records_of_the_range(
    kernels: SimpleNamespace, given_records: list[Record], base_offset: int, first: int, end: int, with_headers: bool
) -> None:
    payload, _, _ = kernels.write.encode_records(given_records, base_offset, 1000)
    expected = [
        Record(record.offset, record.timestamp, record.key, record.value, record.headers if with_headers else ())
        for record in kernels.read.read_records(payload, 0, len(given_records), base_offset, 1000, -1)
        if base_offset + first <= record.offset < base_offset + end
    ]
    columns = kernels.columns.ColumnBuffers(with_headers)
    framed = b"12345" + payload + b"678"
    taken = kernels.columns.take_records(
        framed,
        5,
        len(framed) - 3,
        len(given_records),
        base_offset,
        1000,
        -1,
        base_offset + first,
        base_offset + end,
        columns,
    )
    assert taken == len(expected)
    assert rows_of(framed, columns) == expected
    assert columns.header_count == sum(len(record.headers) for record in expected)


def test_append_time_replaces_every_timestamp(kernels: SimpleNamespace) -> None:
    payload, _, _ = kernels.write.encode_records([Record(-1, 5, None, b""), Record(-1, 9, b"", None)], 0, 5)
    columns = kernels.columns.ColumnBuffers(False)
    assert kernels.columns.take_records(payload, 0, len(payload), 2, 0, 5, 77, 0, FAR, columns) == 2
    assert rows_of(payload, columns) == [Record(0, 77, None, b""), Record(1, 77, b"", None)]


def test_several_batches_go_into_one_buffer(kernels: SimpleNamespace) -> None:
    payload, _, _ = kernels.write.encode_records([Record(-1, 5, None, b"v", (("h", b"x"),))], 0, 5)
    columns = kernels.columns.ColumnBuffers(True)
    for base_offset in (10, 20):
        kernels.columns.take_records(payload, 0, len(payload), 1, base_offset, 5, -1, 0, FAR, columns)
    assert [record.offset for record in rows_of(payload, columns)] == [10, 20]
    assert columns.header_count == 2


@pytest.mark.parametrize("with_headers", [False, True])
@pytest.mark.parametrize("first_offset", [0, FAR])
@pytest.mark.parametrize(("payload", "count"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_records_are_told(
    kernels: SimpleNamespace, payload: bytes, count: int, first_offset: int, with_headers: bool
) -> None:
    columns = kernels.columns.ColumnBuffers(with_headers)
    assert kernels.columns.take_records(payload, 0, len(payload), count, 0, 1, -1, first_offset, FAR, columns) == -1


@pytest.mark.parametrize(("start", "end"), [(-1, 7), (0, 8), (5, 4)])
def test_a_place_outside_the_payload_is_told(kernels: SimpleNamespace, start: int, end: int) -> None:
    columns = kernels.columns.ColumnBuffers(False)
    assert kernels.columns.take_records(bytes(7), start, end, 0, 0, 1, -1, 0, FAR, columns) == -1


@given(records(), MUTATIONS, st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_changed_bytes_are_read_as_the_plain_reader_reads_them(
    kernels: SimpleNamespace, given_records: list[Record], mutations: list[tuple[int, int]], with_headers: bool
) -> None:
    payload, _, _ = kernels.write.encode_records(given_records, 0, 1000)
    changed = bytearray(payload)
    for place, byte in mutations:
        changed[place % len(changed)] = byte
    columns = kernels.columns.ColumnBuffers(with_headers)
    taken = kernels.columns.take_records(
        bytes(changed), 0, len(changed), len(given_records), 0, 1000, -1, 0, FAR, columns
    )
    try:
        expected = kernels.read.read_records(bytes(changed), 0, len(given_records), 0, 1000, -1)
    except InvalidRecord:
        assert taken == -1
        return
    assert taken == len(expected)
    assert [record.value for record in rows_of(bytes(changed), columns)] == [record.value for record in expected]
