"""Batches: null stays null, a bad record spoils nothing but itself."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

import pyarrow as pa

from millbeck.pipeline.errors import BadRecord
from millbeck.pipeline.formats.columns import read_column, write_column

MILLISECONDS, MICROSECONDS = pa.timestamp("ms", tz="UTC"), pa.timestamp("us", tz="UTC")


def _number(record: bytes) -> int:
    if not record.isdigit():
        raise BadRecord("no digits")
    return int(record)


def test_what_cannot_be_read_is_null_and_says_why() -> None:
    column = read_column(pa.array([b"1", b"x", None, b"2"]), _number, pa.int64(), pa.int64())
    assert column.to_pylist() == [
        {"value": 1, "problem": None},
        {"value": None, "problem": "no digits"},
        {"value": None, "problem": None},
        {"value": 2, "problem": None},
    ]


def test_a_value_without_a_place_in_its_column_is_found_out() -> None:
    column = read_column(pa.array([b"1", b"5000000000", b"2"]), _number, pa.int32(), pa.int32())
    assert column.field("value").to_pylist() == [1, None, 2]
    assert column.field("problem").to_pylist()[1] is not None
    too_late = read_column(pa.array([b"1", str(2**62).encode()]), _number, MILLISECONDS, MICROSECONDS)
    assert too_late.field("value").null_count == 1
    assert [problem is None for problem in too_late.field("problem").to_pylist()] == [True, False]


def test_numbers_are_times_in_the_units_of_the_schema() -> None:
    column = read_column(pa.array([b"1500"]), _number, MILLISECONDS, MICROSECONDS).field("value")
    assert column.cast(pa.int64()).to_pylist() == [1_500_000]
    written = write_column(column, lambda value: str(value).encode(), MILLISECONDS, pa.int64())
    assert written.to_pylist() == [b"1500"]


def test_null_is_written_as_null_and_a_failure_ends_the_batch() -> None:
    def write(value: int) -> bytes:
        if value < 0:
            raise BadRecord("negative")
        return b"%d" % value

    assert write_column(pa.array([1, None]), write).to_pylist() == [b"1", None]
    with pytest.raises(BadRecord, match="negative"):
        write_column(pa.array([1, -1]), write)
