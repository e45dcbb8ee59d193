"""Columns are brought to a schema's type by name, or refused while the topology is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.fitting import fitted
from millbeck.pipeline.topology.records import type_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_fields_are_found_by_name_widened_or_null(spark: SparkSession) -> None:
    wanted = type_of("s STRING, l BIGINT, d DOUBLE, a ARRAY<STRUCT<x: BIGINT, y: STRING>>, m MAP<STRING, BIGINT>")
    frame = spark.sql(
        "SELECT named_struct('l', 1, 's', 'x', 'a', array(named_struct('x', 2)), 'm', map('k', 3)) AS value"
        " UNION ALL SELECT NULL"
    )
    (row, nothing) = frame.select(fitted(sf.col("value"), frame.schema["value"].dataType, wanted, "it")).collect()
    assert row[0].asDict(recursive=True) == {"s": "x", "l": 1, "d": None, "a": [{"x": 2, "y": None}], "m": {"k": 3}}
    assert nothing[0] is None


@pytest.mark.parametrize(
    ("held", "wanted", "complaint"),
    [
        ("a BIGINT", "a INT", "it.a is bigint, but its schema requires int"),
        ("a STRING", "a INT", "it.a is string"),
        ("a INT, b INT", "a INT", "it has the field b, which its schema does not have; the fields are a"),
        ("ARRAY<DOUBLE>", "ARRAY<INT>", r"it\[\] is double"),
        ("MAP<STRING, STRING>", "MAP<INT, STRING>", "it is map"),
        ("DECIMAL(10,2)", "DECIMAL(10,3)", "it is decimal"),
        ("BIGINT", "DOUBLE", "it is bigint"),
    ],
)
def test_what_does_not_fit_is_named(spark: SparkSession, held: str, wanted: str, complaint: str) -> None:
    with pytest.raises(TopologyError, match=complaint):
        fitted(sf.col("value"), type_of(held), type_of(wanted), "it")
