"""Arrow record batches hold what the records held."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.records.strategies import records

from millbeck.client.consumer.fetched_columns import FetchedColumns
from millbeck.records import batch
from millbeck.records.record import Record

pa = pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from millbeck.pipeline import arrow  # noqa: E402

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows(data: bytes, with_headers: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for columns in FetchedColumns(data, 0, 1 << 40, with_headers=with_headers).columns():
        made = arrow.record_batch(columns, "orders", 3, with_headers)
        made.validate(full=True)
        assert made.schema.equals(arrow.schema(with_headers))
        found += made.to_pylist()
    return found


@given(st.lists(records(max_size=5), min_size=1, max_size=3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_they_hold_the_records(batches: list[list[Record]], with_headers: bool) -> None:
    data, expected, base = b"", [], 0
    for given_records in batches:
        data += batch.build(given_records, base_offset=base)
        for index, record in enumerate(given_records):
            row: dict[str, Any] = {
                "key": record.key,
                "value": record.value,
                "topic": "orders",
                "partition": 3,
                "offset": base + index,
                "timestamp": EPOCH + timedelta(milliseconds=record.timestamp),
                "timestampType": 0,
            }
            if with_headers:
                row["headers"] = [{"key": name, "value": value} for name, value in record.headers] or None
            expected.append(row)
        base += len(given_records)
    assert rows(data, with_headers) == expected


def test_append_time_is_said() -> None:
    (row,) = rows(batch.build([Record(-1, 5, None, b"v")], append_timestamp=70), False)
    assert (row["timestampType"], row["timestamp"]) == (1, EPOCH + timedelta(milliseconds=70))


def test_names_of_headers_that_are_no_text() -> None:
    data = batch.build([Record(-1, 5, None, b"v", (("ok", b"1"), (b"\xff".decode("utf-8", "surrogateescape"), b"2")))])
    (row,) = rows(data, True)
    assert [header["key"] for header in row["headers"]] == ["ok", "�"]


def test_nothing_gathered() -> None:
    import numpy as np

    nothing = np.array([], dtype=np.int64)
    assert arrow.gathered(b"", nothing, nothing).to_pylist() == []


def test_the_schema_is_sparks() -> None:
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    from pyspark.sql.pandas.types import to_arrow_schema

    from millbeck.pipeline.source import source_schema

    for with_headers in (False, True):
        theirs = to_arrow_schema(source_schema(with_headers), timezone="UTC")
        assert arrow.schema(with_headers).equals(theirs)
