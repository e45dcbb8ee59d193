"""Needs pyspark and pyarrow: which columns an Avro schema becomes.

As Spark's own Avro source has it: an optional is a nullable column, a union of several a struct of ``member0``,
``member1`` and so on, enums are strings. Times of day, uuids and nanoseconds stay what they are written as.
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
from millbeck.pipeline.formats.columns import Types

DECIMAL_DIGITS_MAX: Final = 38


_LEAVES: Final[dict[tuple[str, str | None], Types]] = {
    ("null", None): Types(NullType(), pa.null(), pa.null()),
    ("boolean", None): Types(BooleanType(), pa.bool_(), pa.bool_()),
    ("int", None): Types(IntegerType(), pa.int32(), pa.int32()),
    ("long", None): Types(LongType(), pa.int64(), pa.int64()),
    ("float", None): Types(FloatType(), pa.float32(), pa.float32()),
    ("double", None): Types(DoubleType(), pa.float64(), pa.float64()),
    ("string", None): Types(StringType(), pa.string(), pa.string()),
    ("enum", None): Types(StringType(), pa.string(), pa.string()),
    ("bytes", None): Types(BinaryType(), pa.binary(), pa.binary()),
    ("fixed", None): Types(BinaryType(), pa.binary(), pa.binary()),
    ("int", "date"): Types(DateType(), pa.date32(), pa.int32()),
    ("long", "timestamp-millis"): Types(TimestampType(), pa.timestamp("ms", tz="UTC"), pa.int64()),
    ("long", "timestamp-micros"): Types(TimestampType(), pa.timestamp("us", tz="UTC"), pa.int64()),
    ("long", "local-timestamp-millis"): Types(TimestampNTZType(), pa.timestamp("ms"), pa.int64()),
    ("long", "local-timestamp-micros"): Types(TimestampNTZType(), pa.timestamp("us"), pa.int64()),
}


def types_of(shape: Any) -> Types:
    """``shape`` is an `AvroSchema`'s; raises `SchemaError` for what has no columns."""
    if isinstance(shape, list):
        return _union(shape)
    kind = shape if isinstance(shape, str) else shape["type"]
    if kind == "record":
        return _struct([(field["name"], types_of(field["type"])) for field in shape["fields"]])
    if kind == "array":
        inner = types_of(shape["items"])
        return Types(ArrayType(inner.spark), pa.list_(inner.timed), pa.list_(inner.plain))
    if kind == "map":
        inner = types_of(shape["values"])
        return Types(
            MapType(StringType(), inner.spark), pa.map_(pa.string(), inner.timed), pa.map_(pa.string(), inner.plain)
        )
    logical = None if isinstance(shape, str) else shape.get("logicalType")
    if logical == "decimal":
        return _decimal(int(shape["precision"]), int(shape.get("scale", 0)))
    return _LEAVES.get((kind, logical), _LEAVES[kind, None])


def _decimal(precision: int, scale: int) -> Types:
    if precision > DECIMAL_DIGITS_MAX:
        raise SchemaError(f"the schema has a decimal of {precision} digits, and Spark's have {DECIMAL_DIGITS_MAX}")
    kind = pa.decimal128(precision, scale)
    return Types(DecimalType(precision, scale), kind, kind)


def _union(shape: list[Any]) -> Types:
    held = branches(shape)
    if not held:
        return _LEAVES["null", None]
    if len(held) == 1:
        return types_of(held[0])
    return _struct([(f"member{place}", types_of(branch)) for place, branch in enumerate(held)])


def _struct(fields: list[tuple[str, Types]]) -> Types:
    return Types(
        StructType([StructField(name, inner.spark) for name, inner in fields]),
        pa.struct([(name, inner.timed) for name, inner in fields]),
        pa.struct([(name, inner.plain) for name, inner in fields]),
    )
