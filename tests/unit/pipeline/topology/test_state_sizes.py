"""Estimates of what a key costs in state."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.types import ArrayType, BooleanType, LongType, MapType, StringType, StructField, StructType

from millbeck.pipeline.topology.state_sizes import bytes_of


def test_a_row_costs_its_fields() -> None:
    number = bytes_of(LongType()) - bytes_of()
    text = bytes_of(StringType()) - bytes_of()
    assert number == 8 < text
    assert bytes_of(LongType(), LongType()) == bytes_of() + 2 * number
    struct = StructType([StructField("a", LongType()), StructField("b", StringType())])
    assert bytes_of(struct) == bytes_of() + 8 + number + text
    assert bytes_of(ArrayType(LongType())) > bytes_of(struct)
    assert bytes_of(MapType(StringType(), LongType())) > bytes_of(ArrayType(LongType()))
    assert bytes_of(BooleanType()) == bytes_of() + 1
