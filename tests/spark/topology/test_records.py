"""What functions may return, and columns that are described anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.records import column, replacing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_objects_are_made_of_columns_and_plain_values(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 2 AS n")
    made = column({"twice": sf.col("n") * 2, "kind": "even", "inner": {"n": sf.col("n")}, "none": None}, "test")
    row = frame.select(made.alias("made")).collect()[0]["made"]
    assert row.asDict(recursive=True) == {"twice": 4, "kind": "even", "inner": {"n": 2}, "none": None}


def test_an_object_without_fields_is_refused(spark: SparkSession) -> None:
    with pytest.raises(TopologyError, match="the test returned an object without fields"):
        column({}, "the test")


def test_only_what_is_named_changes(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS key, 2 AS value, 3 AS timestamp, 4 AS order, 5 AS extra")
    assert frame.select(*[each.alias(name) for name, each in replacing(frame, value=sf.lit("new")).items()]).collect()[
        0
    ].asDict() == {
        "key": 1,
        "value": "new",
        "timestamp": 3,
        "order": 4,
    }
