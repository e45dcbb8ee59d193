"""Debezium's semantic types: what the numbers, texts and structs of its schemas mean, by the schema's name.

A moment is in microseconds, so that what a database has is kept; the units of a schema say how it is written there.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.logical import DATE, TIME, TIMESTAMP, Instant, scaled, stored_number
from millbeck.pipeline.connect.model.schema import BYTES_SCHEMA, INT32_SCHEMA, Field, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct

VARIABLE_SCALE_DECIMAL: Final = "io.debezium.data.VariableScaleDecimal"
JSON: Final = "io.debezium.data.Json"
UUID: Final = "io.debezium.data.Uuid"
XML: Final = "io.debezium.data.Xml"
ENUM: Final = "io.debezium.data.Enum"
ZONED_TIMESTAMP: Final = "io.debezium.time.ZonedTimestamp"
ZONED_TIME: Final = "io.debezium.time.ZonedTime"
MICRO_TIMESTAMP: Final = "io.debezium.time.MicroTimestamp"
NANO_TIMESTAMP: Final = "io.debezium.time.NanoTimestamp"


class Temporal(Enum):
    """What a schema says of time."""

    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    ZONED_TIMESTAMP = "timestamp with a time zone, as text"
    ZONED_TIME = "time with a time zone, as text"


@dataclass(frozen=True, slots=True)
class TemporalUnit:
    """Numbers of a schema: ``number * multiplier // divisor`` are microseconds, or days of a date."""

    kind: Temporal
    multiplier: int = 1
    divisor: int = 1


_UNITS: Final = {
    DATE: TemporalUnit(Temporal.DATE),
    TIME: TemporalUnit(Temporal.TIME, 1000),
    TIMESTAMP: TemporalUnit(Temporal.TIMESTAMP, 1000),
    "io.debezium.time.Date": TemporalUnit(Temporal.DATE),
    "io.debezium.time.Time": TemporalUnit(Temporal.TIME, 1000),
    "io.debezium.time.MicroTime": TemporalUnit(Temporal.TIME),
    "io.debezium.time.NanoTime": TemporalUnit(Temporal.TIME, 1, 1000),
    "io.debezium.time.Timestamp": TemporalUnit(Temporal.TIMESTAMP, 1000),
    MICRO_TIMESTAMP: TemporalUnit(Temporal.TIMESTAMP),
    NANO_TIMESTAMP: TemporalUnit(Temporal.TIMESTAMP, 1, 1000),
    ZONED_TIMESTAMP: TemporalUnit(Temporal.ZONED_TIMESTAMP),
    ZONED_TIME: TemporalUnit(Temporal.ZONED_TIME),
}
_TYPES: Final = {
    Temporal.ZONED_TIMESTAMP: (SchemaType.STRING,),
    Temporal.ZONED_TIME: (SchemaType.STRING,),
}


def temporal_of(schema: Schema) -> TemporalUnit | None:
    """The unit of a schema of dates or times, Kafka's or Debezium's; None of any other."""
    unit = None if schema.name is None else _UNITS.get(schema.name)
    if unit is None:
        return None
    return unit if schema.type in _TYPES.get(unit.kind, (SchemaType.INT32, SchemaType.INT64)) else None


def moment_of(schema: Schema, unit: TemporalUnit, value: Any) -> int:
    """Days of a date, microseconds of a time or timestamp. Raises `InvalidValue`; numbers finer than a microsecond lose
    what is below it only if it is zero."""
    number = stored_number(schema, value) if isinstance(value, Instant) else int(value)
    whole, rest = divmod(number * unit.multiplier, unit.divisor)
    if rest:
        raise InvalidValue(f"{number} of {schema.name} is finer than the microseconds that can be stored")
    return whole


VARIABLE_SCALE_DECIMAL_SCHEMA: Final = Schema(
    SchemaType.STRUCT,
    name=VARIABLE_SCALE_DECIMAL,
    version=1,
    doc="Variable scaled decimal",
    fields=(Field("scale", INT32_SCHEMA), Field("value", BYTES_SCHEMA)),
)


def variable_scale_struct(schema: Schema, value: Decimal) -> Struct:
    """A decimal that brings its scale with it."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise InvalidValue(f"{value} is not a decimal that can be stored")
    digits = int(scaled(value, -exponent))
    unscaled = digits.to_bytes((digits + (digits < 0)).bit_length() // 8 + 1, "big", signed=True)
    return Struct.of(schema, {"scale": -exponent, "value": unscaled})


def decimal_of_struct(value: Struct) -> Decimal:
    return scaled(Decimal(int.from_bytes(value["value"], "big", signed=True)), -value["scale"])
