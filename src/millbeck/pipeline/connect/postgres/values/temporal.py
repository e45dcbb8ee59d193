"""Dates, times and intervals. Texts are of DateStyle ISO, IntervalStyle iso_8601 and the time zone UTC.

Years go from 4713 BC to 294276 AD (dates to 5874897), so Python's own types do for most values but not for all.
Infinities are numbers and texts of their own: they are ordered as PostgreSQL orders them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, Final

from millbeck.pipeline.connect.model.logical import (
    MS_PER_DAY,
    Instant,
    date_schema,
    time_schema,
    timestamp_schema,
)
from millbeck.pipeline.connect.model.numbers import Int32, fits
from millbeck.pipeline.connect.model.schema import Schema, SchemaType
from millbeck.pipeline.connect.postgres.values.options import Codec, IntervalMode, TimeMode, ValueOptions

US_PER_SECOND: Final = 1_000_000
US_PER_DAY: Final = 86_400 * US_PER_SECOND
TIMESTAMP_INFINITY_US: Final = 9_223_372_036_825_200_000
TIMESTAMP_MINUS_INFINITY_US: Final = -9_223_372_036_832_400_000
DATE_INFINITY: Final = (1 << 31) - 1
DATE_MINUS_INFINITY: Final = -(1 << 31)
PRECISION_MAX: Final = 6
_MS_PRECISION: Final = 3
_DAYS_PER_MONTH: Final = 365.25 / 12.0
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_DATE: Final = re.compile(r"(\d{4,7})-(\d\d)-(\d\d)( BC)?")
_TIME: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_TIMESTAMP: Final = re.compile(
    r"(\d{4,6}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,6})?)(?:([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?)?( BC)?"
)
_TIMETZ: Final = re.compile(r"(\d\d:\d\d:\d\d(?:\.\d{1,6})?)([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?")
_INTERVAL: Final = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?"
)
_INFINITY: Final = "infinity"
_MINUS_INFINITY: Final = "-infinity"


def precision_of(modifier: int) -> int:
    """The digits after the point of a time: 6 unless the column says less."""
    return modifier if 0 <= modifier <= PRECISION_MAX else PRECISION_MAX


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970 in the Gregorian calendar carried on to any year; the year before 1 is 0."""
    if 1 <= year <= 9999:
        return date(year, month, day).toordinal() - _EPOCH_ORDINAL
    # 400 years have the same number of days wherever they begin.
    cycles, rest = divmod(year - 1, 400)
    return date(rest + 1, month, day).toordinal() - _EPOCH_ORDINAL + cycles * 146_097


def civil_from_days(days: int) -> tuple[int, int, int]:
    cycles, rest = divmod(days + _EPOCH_ORDINAL - 1, 146_097)
    found = date.fromordinal(rest + 1)
    return found.year + 400 * cycles, found.month, found.day


def days_of_date(text: str) -> int:
    if text == _INFINITY:
        return DATE_INFINITY
    if text == _MINUS_INFINITY:
        return DATE_MINUS_INFINITY
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no date")
    year = int(found[1])
    return days_from_civil(1 - year if found[4] else year, int(found[2]), int(found[3]))


def us_of_time(text: str) -> int:
    """Microseconds since midnight; 24:00:00 is allowed."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no time")
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3])
    return seconds * US_PER_SECOND + (int(found[4].ljust(6, "0")) if found[4] else 0)


def _offset_us(sign: str, *parts: str | None) -> int:
    hours, minutes, seconds = (int(part or 0) for part in parts)
    offset = (hours * 3600 + minutes * 60 + seconds) * US_PER_SECOND
    return -offset if sign == "-" else offset


def us_of_timestamp(text: str) -> int:
    """Microseconds since 1970, of a text with or without a zone's offset. A year beyond 294246 does not fit."""
    if text == _INFINITY:
        return TIMESTAMP_INFINITY_US
    if text == _MINUS_INFINITY:
        return TIMESTAMP_MINUS_INFINITY_US
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no timestamp")
    days = days_of_date(found[1] + (found[7] or ""))
    made = days * US_PER_DAY + us_of_time(found[2])
    if found[3]:
        made -= _offset_us(found[3], found[4], found[5], found[6])
    if not fits(made, 64):
        raise ValueError(f"{text!r} does not fit microseconds in 64 bits")
    return made


def _clock(us: int, digits: int | None) -> str:
    """A time of day; ``digits`` of the second after the point, or as many as it takes."""
    seconds, fraction = divmod(us, US_PER_SECOND)
    shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    rest = f"{fraction:06}".rstrip("0") if digits is None else f"{fraction:06}"[:digits]
    return f"{shown}.{rest}" if rest else shown


def year_text(year: int) -> str:
    """A year as in ISO 8601: signed before 0 and beyond 9999."""
    if 0 <= year <= 9999:
        return f"{year:04}"
    return f"{'-' if year < 0 else '+'}{abs(year):04}"


def zoned_timestamp(text: str, precision: int) -> str:
    """A timestamp with time zone as Debezium writes it: in UTC, with as many digits as the column has."""
    if text in (_INFINITY, _MINUS_INFINITY):
        return text
    if len(text) >= 22 and text[4] == "-" and text.endswith("+00"):
        # Nearly all values are of this form.
        fraction = text[20:-3]
        if text[10] == " " and (not fraction or text[19] == "."):
            shown = f"{text[:10]}T{text[11:19]}"
            return f"{shown}.{fraction.ljust(precision, '0')}Z" if precision else f"{shown}Z"
    found = _TIMESTAMP.fullmatch(text)
    if found is None or not found[3]:
        raise ValueError(f"{text!r} is no timestamp with a time zone")
    us = days_of_date(found[1] + (found[7] or "")) * US_PER_DAY + us_of_time(found[2])
    days, rest = divmod(us - _offset_us(found[3], found[4], found[5], found[6]), US_PER_DAY)
    year, month, day = civil_from_days(days)
    return f"{year_text(year)}-{month:02}-{day:02}T{_clock(rest, precision)}Z"


def zoned_time(text: str) -> str:
    """A time with time zone, moved to UTC."""
    found = _TIMETZ.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no time with a time zone")
    us = us_of_time(found[1])
    offset = _offset_us(found[2], found[3], found[4], found[5])
    if us == US_PER_DAY and not offset:
        return "24:00:00Z"
    return f"{_clock((us - offset) % US_PER_DAY, None)}Z"


def _interval_parts(text: str) -> tuple[int, int, int, int, int, Decimal]:
    found = _INTERVAL.fullmatch(text)
    if found is None or text in ("P", "PT"):
        raise ValueError(f"{text!r} is no interval")
    years, months, days, hours, minutes = (int(found[place] or 0) for place in range(1, 6))
    return years, months, days, hours, minutes, Decimal(found[6] or 0)


def interval_us(text: str) -> int:
    """An interval in microseconds; a month has 30.4375 days."""
    if text in (_INFINITY, _MINUS_INFINITY):
        return (1 << 63) - 1 if text == _INFINITY else -(1 << 63)
    years, months, days, hours, minutes, seconds = _interval_parts(text)
    all_days = (years * 12 + months) * _DAYS_PER_MONTH + days
    all_seconds = (((all_days * 24 + hours) * 60) + minutes) * 60 + float(seconds)
    made = int(all_seconds * 1e6)
    if not fits(made, 64):
        raise ValueError(f"{text!r} does not fit microseconds in 64 bits")
    return made


def interval_text(text: str) -> str:
    if text in (_INFINITY, _MINUS_INFINITY):
        return text
    years, months, days, hours, minutes, seconds = _interval_parts(text)
    shown = f"{seconds:f}"
    if "." in shown:
        shown = shown.rstrip("0").rstrip(".")
    if shown in ("-0", ""):
        shown = "0"
    return f"P{years}Y{months}M{days}DT{hours}H{minutes}M{shown}S"


def _named(kind: SchemaType, name: str) -> Schema:
    return Schema(kind, name=f"io.debezium.time.{name}", version=1)


def _from_text(convert: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda data: convert(data.decode("ascii"))


def _date(options: ValueOptions) -> Codec:
    if options.time is TimeMode.CONNECT:
        return Codec(date_schema(), _from_text(lambda text: Instant(days_of_date(text) * MS_PER_DAY)), Instant(0))
    schema = _named(SchemaType.INT32, "Date")

    def decode(data: bytes) -> Int32:
        if len(data) == 10:
            return Int32(date(int(data[:4]), int(data[5:7]), int(data[8:])).toordinal() - _EPOCH_ORDINAL)
        return Int32(days_of_date(data.decode("ascii")))

    return Codec(schema, decode, Int32(0))


def _time(options: ValueOptions, precision: int) -> Codec:
    mode = options.time
    if mode is TimeMode.CONNECT:
        return Codec(time_schema(), _from_text(lambda text: Instant(us_of_time(text) // 1000)), Instant(0))
    if mode is TimeMode.NANOSECONDS:
        return Codec(_named(SchemaType.INT64, "NanoTime"), _from_text(lambda text: us_of_time(text) * 1000), 0)
    if mode is TimeMode.ADAPTIVE and precision <= _MS_PRECISION:
        schema = _named(SchemaType.INT32, "Time")
        return Codec(schema, _from_text(lambda text: Int32(us_of_time(text) // 1000)), Int32(0))
    return Codec(_named(SchemaType.INT64, "MicroTime"), _from_text(us_of_time), 0)


def _timestamp(options: ValueOptions, precision: int) -> Codec:
    mode = options.time
    if mode is TimeMode.CONNECT:
        return Codec(timestamp_schema(), _from_text(lambda text: Instant(us_of_timestamp(text) // 1000)), Instant(0))
    if mode is TimeMode.NANOSECONDS:
        return Codec(_named(SchemaType.INT64, "NanoTimestamp"), _from_text(_ns_of_timestamp), 0)
    if mode is not TimeMode.MICROSECONDS and precision <= _MS_PRECISION:
        schema = _named(SchemaType.INT64, "Timestamp")
        return Codec(schema, _from_text(lambda text: us_of_timestamp(text) // 1000), 0)
    return Codec(_named(SchemaType.INT64, "MicroTimestamp"), _from_text(us_of_timestamp), 0)


def _ns_of_timestamp(text: str) -> int:
    if text in (_INFINITY, _MINUS_INFINITY):
        return (1 << 63) - 1 if text == _INFINITY else -(1 << 63)
    made = us_of_timestamp(text) * 1000
    if not fits(made, 64):
        raise ValueError(f"{text!r} does not fit nanoseconds in 64 bits: set time.precision.mode=adaptive")
    return made


def _interval(options: ValueOptions) -> Codec:
    if options.interval is IntervalMode.STRING:
        return Codec(_named(SchemaType.STRING, "Interval"), _from_text(interval_text), "P0Y0M0DT0H0M0S")
    return Codec(_named(SchemaType.INT64, "MicroDuration"), _from_text(interval_us), 0)


def temporal_codec(name: str, modifier: int, options: ValueOptions) -> Codec | None:
    """The codec of a type of dates or times; None for any other."""
    precision = precision_of(modifier)
    match name:
        case "date":
            return _date(options)
        case "time":
            return _time(options, precision)
        case "timestamp":
            return _timestamp(options, precision)
        case "timestamptz":
            schema = _named(SchemaType.STRING, "ZonedTimestamp")
            return Codec(schema, _from_text(lambda text: zoned_timestamp(text, precision)), "1970-01-01T00:00:00Z")
        case "timetz":
            return Codec(_named(SchemaType.STRING, "ZonedTime"), _from_text(zoned_time), "00:00:00Z")
        case "interval":
            return _interval(options)
    return None
