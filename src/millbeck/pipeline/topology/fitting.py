"""Needs pyspark: convert a column to the type that a schema requires, field by field and by name.

Numbers are widened; fields missing in the column become null where the schema allows it; any other difference is
refused while the topology is built, not when the first record is written.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StructType,
)

from millbeck.pipeline.errors import TopologyError

_WIDTHS: Final = (ByteType(), ShortType(), IntegerType(), LongType())


def fitted(column: Column, held: DataType, wanted: DataType, what: str) -> Column:
    """Convert a column to the schema's type. Raises `TopologyError`; ``what`` is the column's name in messages."""
    if held == wanted:
        return column
    if isinstance(held, StructType) and isinstance(wanted, StructType):
        return _struct(column, held, wanted, what)
    if isinstance(held, ArrayType) and isinstance(wanted, ArrayType):
        inner = (held.elementType, wanted.elementType)
        return sf.transform(column, lambda each: fitted(each, *inner, f"{what}[]"))
    if isinstance(held, MapType) and isinstance(wanted, MapType) and held.keyType == wanted.keyType:
        kinds = (held.valueType, wanted.valueType)
        return sf.transform_values(column, lambda _, each: fitted(each, *kinds, f"{what}[]"))
    if isinstance(held, NullType) or _widens(held, wanted):
        return column.cast(wanted)
    raise TopologyError(
        f"{what} is {held.simpleString()}, but its schema requires {wanted.simpleString()}: cast it before it is "
        "written"
    )


def _struct(column: Column, held: StructType, wanted: StructType, what: str) -> Column:
    strange = [name for name in held.names if name not in wanted.names]
    if strange:
        raise TopologyError(
            f"{what} has the field {strange[0]}, which its schema does not have; the fields are "
            f"{', '.join(wanted.names)}"
        )
    parts = [
        fitted(column[field.name], held[field.name].dataType, field.dataType, f"{what}.{field.name}")
        if field.name in held.names
        else sf.lit(None).cast(field.dataType)
        for field in wanted.fields
    ]
    whole = sf.struct(*[part.alias(field.name) for part, field in zip(parts, wanted.fields, strict=True)])
    return sf.when(column.isNotNull(), whole)


def _widens(held: DataType, wanted: DataType) -> bool:
    if held in _WIDTHS:
        if wanted in _WIDTHS:
            return _WIDTHS.index(held) < _WIDTHS.index(wanted)
        if isinstance(wanted, DecimalType):
            return bool(wanted.scale == 0 and wanted.precision >= 20)
        return isinstance(wanted, DoubleType) and held != LongType()
    if isinstance(held, DecimalType) and isinstance(wanted, DecimalType):
        integer_digits = wanted.precision - wanted.scale
        return bool(wanted.scale >= held.scale and integer_digits >= held.precision - held.scale)
    return isinstance(held, FloatType) and isinstance(wanted, DoubleType)
