"""Arrow record batches hold what the records held."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.client.consumer.fetched_columns import CompletedColumnFetch
from millbeck.records import batch
from millbeck.records.record import Record
from tests.unit.records.strategies import records

pa = pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from millbeck.client.columns import arrow  # noqa: E402

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows(data: bytes, with_headers: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for columns in CompletedColumnFetch(data, 0, 1 << 40, with_headers=with_headers).columns():
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


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=30), st.integers(0, 30), st.booleans())
@settings(max_examples=60, deadline=None)
def test_nulls_of_slices_too(values: list[int | None], begin: int, is_of_nothing: bool) -> None:
    column = pa.nulls(len(values)) if is_of_nothing else pa.array(values, type=pa.int32())
    part = column[min(begin, len(values)) :]
    assert arrow.null_mask(part).tolist() == part.is_null().to_pylist()


def test_no_pandas_is_loaded() -> None:
    """It would take every new worker of Spark's longer than the records do."""
    script = (
        "import sys\n"
        "from millbeck.client.consumer.fetched_columns import CompletedColumnFetch\n"
        "from millbeck.client.columns import arrow\n"
        "from millbeck.client.columns.rows import rows_of\n"
        "from millbeck.records import batch\n"
        "from millbeck.records.record import Record\n"
        "data = batch.build([Record(-1, 5, None, b'v', (('h', b'w'),)), Record(-1, 5, b'k', None)])\n"
        "for columns in CompletedColumnFetch(data, 0, 9, with_headers=True).columns():\n"
        "    made = arrow.record_batch(columns, 'orders', 3, True)\n"
        "    rows_of(made.select(['key', 'value', 'headers']))\n"
        "    print(made.num_rows, 'pandas' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "2 False\n"


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

    from millbeck.pipeline.source_schema import source_schema

    for with_headers in (False, True):
        theirs = to_arrow_schema(source_schema(with_headers), timezone="UTC")
        assert arrow.schema(with_headers).equals(theirs)
