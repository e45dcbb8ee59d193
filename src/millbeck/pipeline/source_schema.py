"""Needs pyspark: the columns of ``format("millbeck")`` as a source, which are those of Spark's Kafka source.

Spark asks for them in a separate process while the user waits for the first row, so nothing else is imported here.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_FIELDS: Final = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)


def source_schema(with_headers: bool) -> StructType:
    fields = list(_FIELDS)
    if with_headers:
        fields.append(StructField("headers", ArrayType(_HEADER)))
    return StructType(fields)
