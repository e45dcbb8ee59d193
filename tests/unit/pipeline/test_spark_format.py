"""What Spark gets when it asks for ``format("millbeck")``."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.types import StructType

import pyspark_millbeck
from millbeck.pipeline.errors import InvalidOption
from millbeck.pipeline.source import BatchReader, StreamReader, source_schema
from millbeck.pipeline.spark_format import MillbeckFormat

OPTIONS = {"kafka.bootstrap.servers": "h:1", "subscribe": "a"}


def test_it_has_a_name_and_registers_itself() -> None:
    assert MillbeckFormat.name() == "millbeck"
    assert pyspark_millbeck.DefaultSource is MillbeckFormat


def test_the_schema_depends_on_headers() -> None:
    assert MillbeckFormat(OPTIONS).schema() == source_schema(False)
    assert MillbeckFormat({**OPTIONS, "includeHeaders": "true"}).schema() == source_schema(True)


def test_readers() -> None:
    source = MillbeckFormat(OPTIONS)
    assert isinstance(source.reader(StructType()), BatchReader)
    assert isinstance(source.streamReader(StructType()), StreamReader)
    with pytest.raises(InvalidOption):
        MillbeckFormat({}).reader(StructType())
