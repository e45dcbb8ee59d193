"""What Spark gets when it asks for ``format("millbeck")``."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructType

import pyspark_millbeck
from millbeck.pipeline.errors import InvalidOption
from millbeck.pipeline.sink import BatchWriter, StreamWriter
from millbeck.pipeline.source import BatchReader, StreamReader
from millbeck.pipeline.source_schema import source_schema
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


def test_writers() -> None:
    sink_format = MillbeckFormat({"kafka.bootstrap.servers": "h:1", "topic": "a"})
    rows = StructType().add("key", StringType()).add("value", StringType()).add("partition", IntegerType())
    assert isinstance(sink_format.writer(rows, False), BatchWriter)
    assert isinstance(sink_format.streamWriter(rows, False), StreamWriter)
    with pytest.raises(InvalidOption, match="only be appended to"):
        sink_format.writer(rows, True)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (StructType().add("text", StringType()), 'need a column "value".*there are text'),
        (StructType().add("value", LongType()), '"value" must be binary or string, not bigint'),
        (StructType().add("value", StringType()).add("partition", LongType()), '"partition" must be int'),
        (
            StructType().add("value", StringType()).add("headers", ArrayType(StringType())),
            '"headers" must be array<struct',
        ),
    ],
)
def test_columns_are_looked_at_before_anything_runs(rows: StructType, words: str) -> None:
    sink_format = MillbeckFormat({"kafka.bootstrap.servers": "h:1", "topic": "a"})
    with pytest.raises(InvalidOption, match=words):
        sink_format.streamWriter(rows, False)


def test_rows_need_a_topic() -> None:
    rows = StructType().add("value", StringType())
    nowhere = {"kafka.bootstrap.servers": "h:1"}
    with pytest.raises(InvalidOption, match="rows need a topic"):
        MillbeckFormat(nowhere).writer(rows, False)
    with_column = rows.add("topic", StringType())
    assert isinstance(MillbeckFormat(nowhere).writer(with_column, False), BatchWriter)
