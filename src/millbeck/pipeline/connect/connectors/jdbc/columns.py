"""Rows to records: the schema of a table's columns, and values of the texts that the database writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from millbeck.pipeline.connect.connectors.debezium_types import VARIABLE_SCALE_DECIMAL_SCHEMA, variable_scale_struct
from millbeck.pipeline.connect.connectors.jdbc.dialect import TableColumn
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.logical import (
    MS_PER_DAY,
    Instant,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from millbeck.pipeline.connect.model.moments import (
    parsed_date,
    parsed_time,
    parsed_timestamp,
    timestamp_text,
)
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32, fits
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType, struct_schema
from millbeck.pipeline.connect.model.struct import Struct

Parse = Callable[[Any], Any]

POSITIVE_INFINITY_US: Final = 9_223_372_036_825_200_000_000
NEGATIVE_INFINITY_US: Final = -9_223_372_036_832_400_000_000
_WHOLE: Final[Mapping[str, SchemaType]] = {
    "int2": SchemaType.INT16,
    "int4": SchemaType.INT32,
    "int8": SchemaType.INT64,
    "oid": SchemaType.INT64,
    "tinyint": SchemaType.INT8,
    "smallint": SchemaType.INT16,
    "mediumint": SchemaType.INT32,
    "int": SchemaType.INT32,
    "bigint": SchemaType.INT64,
    "year": SchemaType.INT32,
}
_WIDER: Final = {
    SchemaType.INT8: SchemaType.INT16,
    SchemaType.INT16: SchemaType.INT32,
    SchemaType.INT32: SchemaType.INT64,
    SchemaType.INT64: SchemaType.INT64,
}
_NUMBERS: Final[Mapping[SchemaType, tuple[int, Callable[[int], int]]]] = {
    SchemaType.INT8: (8, Int8),
    SchemaType.INT16: (16, Int16),
    SchemaType.INT32: (32, Int32),
    SchemaType.INT64: (64, int),
}
WHOLE_TYPES: Final = frozenset(_WHOLE) - {"year"}
_BINARY: Final = frozenset({"bytea", "binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob"})
_TIMESTAMPS: Final = frozenset({"timestamp", "timestamptz", "datetime"})
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")


@dataclass(frozen=True, slots=True)
class RowReader:
    """Makes a struct of a row."""

    schema: Schema
    parsers: tuple[Parse, ...]

    def struct(self, row: Sequence[Any]) -> Struct:
        """Raises `InvalidValue` for a value that no type of Kafka Connect can hold."""
        made = Struct(self.schema)
        for place, (parse, text) in enumerate(zip(self.parsers, row, strict=True)):
            if text is None:
                continue
            try:
                made.values[place] = parse(text)
            except (InvalidValue, ValueError, InvalidOperation) as error:
                raise InvalidValue(f"the column {self.schema.fields[place].name}: {error}") from error
        return made


def reader_of(columns: Sequence[TableColumn], name: str, mapping: str, granularity: str, zone: tzinfo) -> RowReader:
    """The reader of a table's rows. ``zone`` is that of columns without one."""
    fields: list[Field] = []
    parsers: list[Parse] = []
    for column in columns:
        schema, parse = _column(column, mapping.lower(), granularity.lower(), zone)
        fields.append(Field(column.name, schema))
        parsers.append(parse)
    return RowReader(struct_schema(fields, basis=Schema(SchemaType.STRUCT, name=name)), tuple(parsers))


def _column(column: TableColumn, mapping: str, granularity: str, zone: tzinfo) -> tuple[Schema, Parse]:
    optional, kind = column.is_nullable, column.type_name
    if kind in _WHOLE:
        whole = _WHOLE[kind]
        return _whole(_WIDER[whole] if column.is_unsigned else whole, optional)
    if kind in ("numeric", "decimal"):
        return _numeric(column, mapping)
    if kind in _TIMESTAMPS:
        return _timestamp(granularity, optional, zone)
    match kind:
        case "bool":
            return Schema(SchemaType.BOOLEAN, optional), lambda text: text == "t"
        case "float4" | "float":
            return Schema(SchemaType.FLOAT32, optional), lambda text: Float32(float(text))
        case "float8" | "double":
            return Schema(SchemaType.FLOAT64, optional), float
        case "date":
            return date_schema(optional=optional), _date
        case "time":
            return time_schema(optional=optional), lambda text: Instant(parsed_time(text) // 1000)
        case "bit" if column.precision == 1:
            return Schema(SchemaType.INT8, optional), _bit
        case "bit":
            return Schema(SchemaType.BYTES, optional), _bits
    if kind in _BINARY:
        return Schema(SchemaType.BYTES, optional), bytes
    return Schema(SchemaType.STRING, optional), str


def _whole(kind: SchemaType, optional: bool) -> tuple[Schema, Parse]:
    bits, number = _NUMBERS[kind]

    def parse(text: Any) -> int:
        found = int(text)
        if not fits(found, bits):
            raise InvalidValue(f"{found} is more than a number of {bits} bits can hold")
        return number(found)

    return Schema(kind, optional), parse


def _numeric(column: TableColumn, mapping: str) -> tuple[Schema, Parse]:
    optional, precision, scale = column.is_nullable, column.precision, column.scale
    if precision is None or scale is None:
        from dataclasses import replace

        schema = replace(VARIABLE_SCALE_DECIMAL_SCHEMA, optional=optional)
        return schema, lambda text: variable_scale_struct(schema, _decimal(text))
    if mapping != "none" and scale == 0 and precision <= 18:
        kind = next(
            kind
            for digits, kind in (
                (2, SchemaType.INT8),
                (4, SchemaType.INT16),
                (9, SchemaType.INT32),
                (18, SchemaType.INT64),
            )
            if precision <= digits
        )
        return _whole(kind, optional)
    if scale > 0 and (mapping == "best_fit_eager_double" or (mapping == "best_fit" and precision <= 18)):
        return Schema(SchemaType.FLOAT64, optional), lambda text: float(_decimal(text))
    return decimal_schema(scale, optional=optional), _decimal


def _decimal(text: str) -> Decimal:
    if text in _NOT_FINITE:
        raise InvalidValue(f"{text} is no number that a Decimal can hold: cast the column to a float in a query")
    return Decimal(text)


def _date(text: str) -> Instant:
    if "infinity" in text:
        raise InvalidValue(f"{text} is no day that a Date can hold: cast the column to a timestamp in a query")
    return Instant(parsed_date(text) * MS_PER_DAY)


def _bit(stored: Any) -> Int8:
    if isinstance(stored, str):  # PostgreSQL's bit(1)
        return Int8(stored == "1")
    return Int8(int.from_bytes(stored, "big"))


def _bits(stored: Any) -> bytes:
    if isinstance(stored, str):
        return int(stored or "0", 2).to_bytes((len(stored) + 7) // 8, "big")
    return bytes(stored)


def moment(text: str, zone: tzinfo) -> int:
    """Microseconds of a timestamp column's text; what PostgreSQL's JDBC driver has for infinite ones."""
    if text == "infinity":
        return POSITIVE_INFINITY_US
    if text == "-infinity":
        return NEGATIVE_INFINITY_US
    return parsed_timestamp(text, zone)


def _timestamp(granularity: str, optional: bool, zone: tzinfo) -> tuple[Schema, Parse]:
    unit, _, form = granularity.partition("_")
    finer = 1000 if unit == "nanos" else 1
    if granularity == "connect_logical":
        return timestamp_schema(optional=optional), lambda text: Instant(moment(text, zone) // 1000)
    if form == "long":

        def number(text: str) -> int:
            found = moment(text, zone) * finer
            if not fits(found, 64):
                raise InvalidValue(f"{text} in {unit} is more than 64 bits can hold: use micros_long or a string")
            return found

        return Schema(SchemaType.INT64, optional), number
    if form == "string":
        return Schema(SchemaType.STRING, optional), lambda text: str(moment(text, zone) * finer)
    return Schema(SchemaType.STRING, optional), lambda text: _iso(moment(text, zone), digits=9 if finer == 1000 else 6)


def _iso(microseconds: int, *, digits: int) -> str:
    if microseconds in (POSITIVE_INFINITY_US, NEGATIVE_INFINITY_US):
        raise InvalidValue("an infinite timestamp has no text in ISO 8601: use connect_logical")
    text = timestamp_text(microseconds // 1_000_000 * 1_000_000).replace(" ", "T", 1)
    era = " BC" if text.endswith(" BC") else ""
    fraction = f"{microseconds % 1_000_000:06}".ljust(digits, "0")
    return f"{text.removesuffix(' BC')}.{fraction}{era}"
