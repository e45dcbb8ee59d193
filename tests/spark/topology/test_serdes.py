"""Bytes to columns and back, and which bytes cannot be read."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.serdes import Serde, integer, json, long, raw, serde_for, string

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES: list[tuple[Serde, bytes | None, Any, bool]] = [
    (raw(), b"\x00\xff", b"\x00\xff", False),
    (string(), "süß".encode(), "süß", False),
    (string(), b"\xff\xfe", None, True),
    (string(), None, None, False),
    *[(long(), struct.pack(">q", number), number, False) for number in (0, 1, -1, 2**63 - 1, -(2**63))],
    (long(), b"short", None, True),
    *[(integer(), struct.pack(">i", number), number, False) for number in (0, 7, -7, 2**31 - 1, -(2**31))],
    (integer(), b"12345678", None, True),
    (json("a INT, b STRING"), b'{"a": 1, "b": "x", "more": []}', (1, "x"), False),
    (json("a INT, b STRING"), b'{"a": 1}', (1, None), False),
    (json("a INT, b STRING"), b"{nonsense", None, True),
    (json("a INT, b STRING"), b'{"a": "word"}', None, True),
    (json("a INT, b STRING"), None, None, False),
    (json("ARRAY<INT>"), b"[1, 2]", [1, 2], False),
]


def test_what_is_read_and_what_is_not(spark: SparkSession) -> None:
    """All in one query: each case has a column of its own."""
    frame = spark.createDataFrame(
        [tuple(case[1] for case in CASES)], ", ".join(f"c{n} BINARY" for n in range(len(CASES)))
    )
    columns = []
    for number, (serde, *_) in enumerate(CASES):
        given = sf.col(f"c{number}")
        decoded = serde.decode(given)
        columns += [decoded.alias(f"value{number}"), serde.problem(given, decoded).alias(f"problem{number}")]
    row = frame.select(*columns).collect()[0]
    for number, (serde, given, expected, is_problem) in enumerate(CASES):
        found = row[f"value{number}"]
        plain = tuple(found) if isinstance(expected, tuple) and found is not None else found
        assert (plain, row[f"problem{number}"]) == (expected, is_problem), (serde.name, given)


def test_what_is_written_is_read_again(spark: SparkSession) -> None:
    readable = [(serde, given) for serde, given, expected, _ in CASES if expected is not None]
    frame = spark.createDataFrame(
        [tuple(given for _, given in readable)], ", ".join(f"c{n} BINARY" for n in range(len(readable)))
    )
    columns = []
    for number, (serde, _) in enumerate(readable):
        once = serde.decode(sf.col(f"c{number}"))
        columns.append((once.eqNullSafe(serde.decode(serde.encode(once)))).alias(f"same{number}"))
    row = frame.select(*columns).collect()[0]
    assert all(row), [serde.name for (serde, _), same in zip(readable, row, strict=True) if not same]


def test_json_is_for_what_has_parts(spark: SparkSession) -> None:
    with pytest.raises(TopologyError, match="objects, arrays and maps"):
        json("INT").decode(sf.col("c"))


def test_each_type_has_a_way_to_be_written(spark: SparkSession) -> None:
    frame = spark.sql("SELECT struct(1 AS a) AS s, array(1) AS l, map('k', 1) AS m, 1.5D AS d, 'x' AS t, X'00' AS b")
    names = [serde_for(field.dataType).name for field in frame.schema.fields]
    assert names == ["json", "json", "json", "string", "string", "raw"]
