"""Needs pyspark: estimates of the size of state, from the types of its columns."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructType,
)

_TEXT_BYTES: Final = 20
"""What is taken for a string or bytes, whose length is not known."""
_ELEMENTS: Final = 10
"""What is taken for the length of an array or map."""
_FIELD_BYTES: Final = 8
"""A field of a row of Spark, whatever its type."""
_ROW_BYTES: Final = 16
"""A row of Spark without its fields, and what RocksDB keeps for it."""


def bytes_of(*kinds: DataType) -> int:
    """About how many bytes the state has for a row with these columns."""
    return _ROW_BYTES + sum(map(_field, kinds))


def _field(kind: DataType) -> int:
    if isinstance(kind, (StringType, BinaryType)):
        return _FIELD_BYTES + _TEXT_BYTES
    if isinstance(kind, StructType):
        return _FIELD_BYTES + sum(_field(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _FIELD_BYTES + _ELEMENTS * _field(kind.elementType)
    if isinstance(kind, MapType):
        return _FIELD_BYTES + _ELEMENTS * (_field(kind.keyType) + _field(kind.valueType))
    return 1 if isinstance(kind, (BooleanType, ByteType, NullType)) else _FIELD_BYTES
