"""Rows become the records that the plain reader reads, in the partitions that Kafka's clients choose."""

from __future__ import annotations

from struct import pack, unpack
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millbeck.records.partitioning import partition_for_key
from millbeck.records.record import Record
from tests.unit.records.strategies import records


def numbers(values: list[int]) -> bytes:
    return pack(f"<{len(values)}q", *values)


def pieces(kernel: Any, parts: list[bytes | None], before: bytes = b"") -> Any:
    borders = [len(before)]
    for part in parts:
        borders.append(borders[-1] + len(part or b""))
    nulls = bytes(part is None for part in parts) if None in parts else b""
    return kernel.Pieces(before + b"".join(part or b"" for part in parts), numbers(borders), nulls)


def rows_of(kernel: Any, given_records: list[Record], with_headers: bool = True) -> Any:
    headers = [header for record in given_records for header in record.headers]
    borders = [0]
    for record in given_records:
        borders.append(borders[-1] + len(record.headers))
    return kernel.Rows(
        pieces(kernel, [record.key for record in given_records], b"xx"),
        pieces(kernel, [record.value for record in given_records]),
        numbers(borders) if with_headers else b"",
        pieces(kernel, [name.encode() for name, _ in headers]),
        pieces(kernel, [value for _, value in headers]),
    )


@given(records(max_size=8), st.randoms(use_true_random=False), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_they_are_read_back(kernels: SimpleNamespace, given_records: list[Record], random: Any, headers: bool) -> None:
    order = [random.randrange(len(given_records)) for _ in range(random.randrange(1, 10))]
    buffer = kernels.rows.RecordBuffer(1 << 30)
    rows = rows_of(kernels.rows, given_records, headers)
    middle = random.randrange(len(order) + 1)
    assert buffer.take(rows, numbers(order), 0, middle) == middle
    assert buffer.take(rows, numbers(order), middle, len(order)) == len(order)
    payload = buffer.payload()
    assert (buffer.record_count, buffer.size_bytes) == (len(order), len(payload))
    read = kernels.read.read_records(payload, 0, len(order), 0, 77, -1)
    assert [record.timestamp for record in read] == [77] * len(order)
    assert [(record.key, record.value, record.headers) for record in read] == [
        (given_records[row].key, given_records[row].value, given_records[row].headers if headers else ())
        for row in order
    ]


def test_a_full_buffer_takes_no_more(kernels: SimpleNamespace) -> None:
    rows = rows_of(kernels.rows, [Record(-1, 0, None, bytes(50))] * 3)
    one = kernels.rows.RecordBuffer(1 << 30)
    one.take(rows, numbers([0]), 0, 1)
    size_bytes = one.size_bytes
    buffer = kernels.rows.RecordBuffer(2 * size_bytes)
    assert buffer.take(rows, numbers([0, 1, 2]), 0, 3) == 2
    assert buffer.size_bytes == 2 * size_bytes
    tiny = kernels.rows.RecordBuffer(1)
    assert tiny.take(rows, numbers([0, 1, 2]), 1, 3) == 2


@given(st.lists(st.none() | st.binary(max_size=23), max_size=20), st.integers(1, 50))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_keys_go_where_clients_send_them(
    kernels: SimpleNamespace, keys: list[bytes | None], partition_count: int
) -> None:
    found = kernels.rows.partitions_of(pieces(kernels.rows, keys, b"before"), partition_count)
    assert list(unpack(f"<{len(keys)}q", found)) == [
        -1 if key is None else partition_for_key(key, partition_count) for key in keys
    ]


def test_columns_that_do_not_fit_are_refused(kernels: SimpleNamespace) -> None:
    kernel = kernels.rows
    two, three = pieces(kernel, [b"a", b"b"]), pieces(kernel, [b"a", b"b", b"c"])
    nothing = pieces(kernel, [])
    with pytest.raises(ValueError, match="different lengths"):
        kernel.Rows(two, three, b"", nothing, nothing)
    with pytest.raises(ValueError, match="one boundary more"):
        kernel.Rows(two, two, numbers([0, 1]), three, three)
    with pytest.raises(ValueError, match="boundary 2 is 4"):
        kernel.Rows(two, two, numbers([0, 1, 4]), three, three)
    for borders in ([0, 3, 2], [0, 9], [-1, 2]):
        with pytest.raises(ValueError, match="boundary"):
            kernel.Pieces(b"abc", numbers(borders), b"")
    for bad in ((b"", b""), (numbers([0, 1]), b"\0\0")):
        with pytest.raises(ValueError, match="a column needs"):
            kernel.Pieces(b"abc", *bad)
    with pytest.raises(ValueError, match="partition count 0"):
        kernel.partitions_of(two, 0)
    rows = kernel.Rows(two, two, b"", nothing, nothing)
    for order, first, end in (([5], 0, 1), ([-1], 0, 1), ([0], 0, 2), ([0], -1, 1)):
        with pytest.raises(ValueError, match="row"):
            kernel.RecordBuffer(100).take(rows, numbers(order), first, end)
