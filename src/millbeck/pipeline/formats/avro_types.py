"""Needs pyspark and pyarrow: the column types of an Avro schema.

As in Spark's Avro source: an optional type is a nullable column, a union of several types a struct of ``member0``,
``member1`` and so on, enums are strings. Times of day, uuids and nanoseconds keep the underlying Avro type.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from millbeck.pipeline.errors import SchemaError
from millbeck.pipeline.formats.avro_records import branches
from millbeck.pipeline.formats.columns import ColumnTypes

DECIMAL_DIGITS_MAX: Final = 38


_LEAVES: Final[dict[tuple[str, str | None], ColumnTypes]] = {
    ("null", None): ColumnTypes(NullType(), pa.null(), pa.null()),
    ("boolean", None): ColumnTypes(BooleanType(), pa.bool_(), pa.bool_()),
    ("int", None): ColumnTypes(IntegerType(), pa.int32(), pa.int32()),
    ("long", None): ColumnTypes(LongType(), pa.int64(), pa.int64()),
    ("float", None): ColumnTypes(FloatType(), pa.float32(), pa.float32()),
    ("double", None): ColumnTypes(DoubleType(), pa.float64(), pa.float64()),
    ("string", None): ColumnTypes(StringType(), pa.string(), pa.string()),
    ("enum", None): ColumnTypes(StringType(), pa.string(), pa.string()),
    ("bytes", None): ColumnTypes(BinaryType(), pa.binary(), pa.binary()),
    ("fixed", None): ColumnTypes(BinaryType(), pa.binary(), pa.binary()),
    ("int", "date"): ColumnTypes(DateType(), pa.date32(), pa.int32()),
    ("long", "timestamp-millis"): ColumnTypes(TimestampType(), pa.timestamp("ms", tz="UTC"), pa.int64()),
    ("long", "timestamp-micros"): ColumnTypes(TimestampType(), pa.timestamp("us", tz="UTC"), pa.int64()),
    ("long", "local-timestamp-millis"): ColumnTypes(TimestampNTZType(), pa.timestamp("ms"), pa.int64()),
    ("long", "local-timestamp-micros"): ColumnTypes(TimestampNTZType(), pa.timestamp("us"), pa.int64()),
}


def types_of(shape: Any) -> ColumnTypes:
    """The types of an `AvroSchema`'s ``shape``; raises `SchemaError` for a type without a column type."""
    if isinstance(shape, list):
        return _union(shape)
    kind = shape if isinstance(shape, str) else shape["type"]
    if kind == "record":
        return _struct([(field["name"], types_of(field["type"])) for field in shape["fields"]])
    if kind == "array":
        inner = types_of(shape["items"])
        return ColumnTypes(ArrayType(inner.spark), pa.list_(inner.timed), pa.list_(inner.plain))
    if kind == "map":
        inner = types_of(shape["values"])
        return ColumnTypes(
            MapType(StringType(), inner.spark), pa.map_(pa.string(), inner.timed), pa.map_(pa.string(), inner.plain)
        )
    logical = None if isinstance(shape, str) else shape.get("logicalType")
    if logical == "decimal":
        return _decimal(int(shape["precision"]), int(shape.get("scale", 0)))
    return _LEAVES.get((kind, logical), _LEAVES[kind, None])


def _decimal(precision: int, scale: int) -> ColumnTypes:
    if precision > DECIMAL_DIGITS_MAX:
        raise SchemaError(f"the schema has a decimal of {precision} digits, and Spark's have {DECIMAL_DIGITS_MAX}")
    kind = pa.decimal128(precision, scale)
    return ColumnTypes(DecimalType(precision, scale), kind, kind)


def _union(shape: list[Any]) -> ColumnTypes:
    held = branches(shape)
    if not held:
        return _LEAVES["null", None]
    if len(held) == 1:
        return types_of(held[0])
    return _struct([(f"member{place}", types_of(branch)) for place, branch in enumerate(held)])


def _struct(fields: list[tuple[str, ColumnTypes]]) -> ColumnTypes:
    return ColumnTypes(
        StructType([StructField(name, inner.spark) for name, inner in fields]),
        pa.struct([(name, inner.timed) for name, inner in fields]),
        pa.struct([(name, inner.plain) for name, inner in fields]),
    )
