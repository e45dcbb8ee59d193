"""Kafka's logical types: Decimal, Date, Time and Timestamp, on top of BYTES, INT32, INT32 and INT64.

A Decimal's value is a ``decimal.Decimal``, whose exponent is the negative scale. The others' values are an `Instant`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Final

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.schema import Schema, SchemaType

DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
TEMPORAL: Final = (DATE, TIME, TIMESTAMP)

MS_PER_DAY: Final = 24 * 60 * 60 * 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SCALE: Final = "scale"
_DIGITS_MAX: Final = 200_000
"""More than any database keeps: PostgreSQL has up to 131,072 digits before the point and 16,383 behind it."""
_EXACT: Final = Context(prec=_DIGITS_MAX, traps=[Inexact, InvalidOperation, Overflow])


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A moment in milliseconds since 1970 in UTC, of any year."""

    milliseconds: int

    @classmethod
    def of(cls, moment: datetime) -> Instant:
        """The moment of a datetime with a time zone, without its microseconds."""
        return cls((moment - _EPOCH) // timedelta(milliseconds=1))

    def datetime(self) -> datetime:
        """Raises OverflowError outside the years 1 to 9999."""
        return _EPOCH + timedelta(milliseconds=self.milliseconds)


def decimal_schema(scale: int, *, optional: bool = False) -> Schema:
    return Schema(SchemaType.BYTES, name=DECIMAL, version=1, parameters={_SCALE: str(scale)}, optional=optional)


def date_schema(*, optional: bool = False) -> Schema:
    return Schema(SchemaType.INT32, name=DATE, version=1, optional=optional)


def time_schema(*, optional: bool = False) -> Schema:
    return Schema(SchemaType.INT32, name=TIME, version=1, optional=optional)


def timestamp_schema(*, optional: bool = False) -> Schema:
    return Schema(SchemaType.INT64, name=TIMESTAMP, version=1, optional=optional)


def scale_of(schema: Schema) -> int:
    """The scale that a Decimal's schema declares."""
    text = (schema.parameters or {}).get(_SCALE)
    if text is None:
        raise InvalidValue("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError:
        raise InvalidValue("Invalid scale parameter found in Decimal schema: ") from None


def scale(value: Decimal) -> int:
    """The number of digits after the point, negative for trailing zeros that are not written."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise InvalidValue(f"{value} is not a Decimal that can be stored")
    return -exponent


def scaled(value: Decimal, by: int) -> Decimal:
    """``value`` times ten to the power of ``by``, with all of its digits."""
    try:
        return value.scaleb(by, _EXACT)
    except ArithmeticError as error:
        raise InvalidValue(f"a decimal of more than {_DIGITS_MAX:,} digits is not supported") from error


def unscaled_bytes(schema: Schema, value: Decimal) -> bytes:
    """A Decimal as Kafka stores it: the digits as a big-endian two's complement number."""
    declared, actual = scale_of(schema), scale(value)
    if declared != actual:
        raise InvalidValue(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {declared}, value has scale {actual}."
        )
    digits = int(scaled(value, declared))
    return digits.to_bytes((digits + (digits < 0)).bit_length() // 8 + 1, "big", signed=True)


def decimal_of(schema: Schema, unscaled: bytes) -> Decimal:
    if not unscaled:
        raise InvalidValue("Invalid bytes for Decimal field")
    return scaled(Decimal(int.from_bytes(unscaled, "big", signed=True)), -scale_of(schema))


def days_of(value: Instant) -> int:
    if value.milliseconds % MS_PER_DAY:
        raise InvalidValue("Kafka Connect Date type should not have any time fields set to non-zero values.")
    return value.milliseconds // MS_PER_DAY


def time_of_day_of(value: Instant) -> int:
    if not 0 <= value.milliseconds <= MS_PER_DAY:
        raise InvalidValue("Kafka Connect Time type should not have any date fields set to non-zero values.")
    return value.milliseconds


def stored_number(schema: Schema, value: Instant) -> int:
    """The number that Kafka stores for a Date, Time or Timestamp: days, or milliseconds."""
    if schema.name == DATE:
        return days_of(value)
    return time_of_day_of(value) if schema.name == TIME else value.milliseconds


def instant_of(schema: Schema, stored: int) -> Instant:
    """The moment of a stored number of days or milliseconds."""
    if schema.name == DATE:
        return Instant(stored * MS_PER_DAY)
    if schema.name == TIME and not 0 <= stored <= MS_PER_DAY:
        raise InvalidValue("Time values must use number of milliseconds greater than 0 and less than 86400000")
    return Instant(stored)
