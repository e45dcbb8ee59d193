"""Needs pyspark: from the bytes of the log to typed columns and back.

A serde is made of column expressions, so that Spark decodes without a Python call for each record. `problem` says of a
record whether its bytes could not be read; what becomes of such records the topology decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.records import type_of

_UNREADABLE = "_unreadable"


@dataclass(frozen=True, slots=True)
class Serde:
    """``decode`` and ``encode`` are null for null; ``problem`` gets the bytes and what became of them."""

    name: str
    decode: Callable[[Column], Column]
    encode: Callable[[Column], Column]
    problem: Callable[[Column, Column], Column]


def _never(raw: Column, decoded: Column) -> Column:
    return sf.lit(False)


def _lost(raw: Column, decoded: Column) -> Column:
    return raw.isNotNull() & decoded.isNull()


def raw() -> Serde:
    """The bytes as they are."""
    return Serde("raw", lambda column: column, lambda column: column, _never)


def string() -> Serde:
    """UTF-8."""
    return Serde(
        "string",
        lambda column: sf.when(sf.is_valid_utf8(column.cast("string")), column.cast("string")),
        lambda column: column.cast("string").cast("binary"),
        _lost,
    )


def long() -> Serde:
    """Eight bytes, most significant first, as Kafka's LongSerializer writes them."""
    return _integer("long", "bigint", 8)


def integer() -> Serde:
    """Four bytes, most significant first, as Kafka's IntegerSerializer writes them."""
    return _integer("integer", "int", 4)


def _integer(name: str, kind: str, size_bytes: int) -> Serde:
    def decode(column: Column) -> Column:
        half, whole = (sf.lit(str(2 ** (8 * size_bytes - less))).cast("decimal(20,0)") for less in (1, 0))
        unsigned = sf.conv(sf.hex(column), 16, 10).cast("decimal(20,0)")
        signed = sf.when(unsigned >= half, unsigned - whole).otherwise(unsigned)
        return sf.when(sf.length(column) == size_bytes, signed.cast(kind))

    def encode(column: Column) -> Column:
        digits = sf.hex(column.cast("bigint"))
        return sf.unhex(sf.substring(sf.lpad(digits, 16, "0"), 17 - 2 * size_bytes, 2 * size_bytes))

    return Serde(name, decode, encode, _lost)


def json(schema: str | DataType) -> Serde:
    """JSON of this type, as Spark's DDL (``"customer STRING, amount DOUBLE"``) or type; unknown fields are left out."""

    def decode(column: Column) -> Column:
        # Only now: Spark parses types, and serdes are named before it has started.
        kind = type_of(schema)
        text = column.cast("string")
        if isinstance(kind, (ArrayType, MapType)):
            return sf.from_json(text, kind)
        if not isinstance(kind, StructType):
            raise TopologyError(f"json() is for objects, arrays and maps, not for {kind.simpleString()}")
        marked = StructType([*kind.fields, StructField(_UNREADABLE, StringType())])
        parsed = sf.from_json(text, marked, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNREADABLE})
        whole = sf.struct(*[parsed[field.name].alias(field.name) for field in kind.fields])
        return sf.when(column.isNotNull() & parsed[_UNREADABLE].isNull(), whole)

    return Serde("json", decode, lambda column: sf.to_json(column).cast("binary"), _lost)


def serde_for(kind: DataType) -> Serde:
    """What is written where no serde is named: JSON for what has parts, bytes as they are, text for the rest."""
    if isinstance(kind, (StructType, ArrayType, MapType)):
        return json(kind)
    return raw() if isinstance(kind, BinaryType) else string()
