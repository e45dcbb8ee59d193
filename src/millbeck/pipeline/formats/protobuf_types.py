"""Needs pyspark and pyarrow: the column types of a Protobuf message.

Unsigned numbers use the next wider type, so that no value overflows: uint32 is a BIGINT, uint64 a DECIMAL(20,0). A
google.protobuf Timestamp is a timestamp, a Duration its length in microseconds, a wrapper the wrapped type. A recursive
message has no column type and is refused.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from millbeck.pipeline.errors import SchemaError
from millbeck.pipeline.formats.columns import ColumnTypes
from millbeck.pipeline.formats.protobuf_records import DURATION, TIMESTAMP, WRAPPERS, is_map

_UINT64: Final = pa.decimal128(20, 0)
_LEAVES: Final[dict[int, ColumnTypes]] = {
    FieldDescriptor.CPPTYPE_INT32: ColumnTypes(IntegerType(), pa.int32(), pa.int32()),
    FieldDescriptor.CPPTYPE_INT64: ColumnTypes(LongType(), pa.int64(), pa.int64()),
    FieldDescriptor.CPPTYPE_UINT32: ColumnTypes(LongType(), pa.int64(), pa.int64()),
    FieldDescriptor.CPPTYPE_UINT64: ColumnTypes(DecimalType(20, 0), _UINT64, _UINT64),
    FieldDescriptor.CPPTYPE_DOUBLE: ColumnTypes(DoubleType(), pa.float64(), pa.float64()),
    FieldDescriptor.CPPTYPE_FLOAT: ColumnTypes(FloatType(), pa.float32(), pa.float32()),
    FieldDescriptor.CPPTYPE_BOOL: ColumnTypes(BooleanType(), pa.bool_(), pa.bool_()),
    FieldDescriptor.CPPTYPE_ENUM: ColumnTypes(StringType(), pa.string(), pa.string()),
}
_TIMESTAMP: Final = ColumnTypes(TimestampType(), pa.timestamp("us", tz="UTC"), pa.int64())


def types_of(message: Descriptor, around: tuple[str, ...] = ()) -> ColumnTypes:
    """The column types of a message. Raises `SchemaError` if it has none."""
    if message.full_name == TIMESTAMP:
        return _TIMESTAMP
    if message.full_name == DURATION:
        return _LEAVES[FieldDescriptor.CPPTYPE_INT64]
    if message.full_name in WRAPPERS:
        return _one(message.fields_by_name["value"], around)
    if message.full_name in around:
        raise SchemaError(f"the schema's {message.full_name} is recursive, which columns cannot represent")
    if not message.fields:
        raise SchemaError(f"the schema's {message.full_name} has no fields: Spark has no such columns")
    inner = (*around, message.full_name)
    fields = [(field.name, _field(field, inner)) for field in message.fields]
    return ColumnTypes(
        StructType([StructField(name, held.spark) for name, held in fields]),
        pa.struct([(name, held.timed) for name, held in fields]),
        pa.struct([(name, held.plain) for name, held in fields]),
    )


def _field(field: FieldDescriptor, around: tuple[str, ...]) -> ColumnTypes:
    if is_map(field):
        assert field.message_type is not None
        key, value = (_one(field.message_type.fields_by_name[name], around) for name in ("key", "value"))
        return ColumnTypes(
            MapType(key.spark, value.spark), pa.map_(key.timed, value.timed), pa.map_(key.plain, value.plain)
        )
    one = _one(field, around)
    if field.is_repeated:
        return ColumnTypes(ArrayType(one.spark), pa.list_(one.timed), pa.list_(one.plain))
    return one


def _one(field: FieldDescriptor, around: tuple[str, ...]) -> ColumnTypes:
    if field.message_type is not None:
        return types_of(field.message_type, around)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        is_bytes = field.type == FieldDescriptor.TYPE_BYTES
        return (
            ColumnTypes(BinaryType(), pa.binary(), pa.binary())
            if is_bytes
            else ColumnTypes(StringType(), pa.string(), pa.string())
        )
    return _LEAVES[field.cpp_type]
