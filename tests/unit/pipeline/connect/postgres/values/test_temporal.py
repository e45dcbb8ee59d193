"""Dates and times of all the years that PostgreSQL has."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.pipeline.connect.model.logical import Instant
from millbeck.pipeline.connect.postgres.values.options import IntervalMode, TimeMode, ValueOptions
from millbeck.pipeline.connect.postgres.values.temporal import (
    civil_from_days,
    days_from_civil,
    days_of_date,
    interval_text,
    interval_us,
    temporal_codec,
    us_of_timestamp,
    zoned_time,
    zoned_timestamp,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.dates())
def test_dates_of_pythons_years(value: date) -> None:
    codec = temporal_codec("date", -1, ValueOptions())
    assert codec is not None
    assert codec.decode(value.isoformat().encode()) == (value - date(1970, 1, 1)).days


@given(st.integers(-2_440_588 - 1_000_000, (1 << 31) - 1))
def test_days_and_dates_of_any_year_are_inverse(days: int) -> None:
    year, month, day = civil_from_days(days)
    assert days_from_civil(year, month, day) == days


DATES = {
    "infinity": (1 << 31) - 1,
    "-infinity": -(1 << 31),
    "0001-01-01 BC": -719_528,
    "4713-01-01 BC": -2_440_550,
    "5874897-12-31": 2_145_042_905,
    "10000-01-01": 2_932_897,
}


@pytest.mark.parametrize(("text", "days"), DATES.items())
def test_dates_beyond_pythons_years(text: str, days: int) -> None:
    assert days_of_date(text) == days


@given(st.datetimes(timezones=st.just(UTC)))
def test_timestamps_of_pythons_years(value: datetime) -> None:
    text = value.replace(tzinfo=None).isoformat(" ")
    assert us_of_timestamp(text) == (value - EPOCH) // timedelta(microseconds=1)
    assert us_of_timestamp(f"{text}+02:30") == us_of_timestamp(text) - 9_000_000_000


def test_infinite_timestamps_are_debeziums_numbers() -> None:
    assert us_of_timestamp("infinity") == 9_223_372_036_825_200_000
    assert us_of_timestamp("-infinity") == -9_223_372_036_832_400_000
    assert us_of_timestamp("4713-01-01 00:00:00 BC") < us_of_timestamp("0001-01-01 00:00:00")
    with pytest.raises(ValueError, match="64 bits"):
        us_of_timestamp("294276-12-31 23:59:59")


SCHEMAS = {
    ("time", 3, TimeMode.ADAPTIVE): ("io.debezium.time.Time", 3_661_001),
    ("time", -1, TimeMode.ADAPTIVE): ("io.debezium.time.MicroTime", 3_661_001_002),
    ("time", 3, TimeMode.ADAPTIVE_TIME_MICROSECONDS): ("io.debezium.time.MicroTime", 3_661_001_002),
    ("time", 6, TimeMode.NANOSECONDS): ("io.debezium.time.NanoTime", 3_661_001_002_000),
    ("time", 6, TimeMode.CONNECT): ("org.apache.kafka.connect.data.Time", Instant(3_661_001)),
    ("timestamp", 3, TimeMode.ADAPTIVE): ("io.debezium.time.Timestamp", 90_061_001),
    ("timestamp", 3, TimeMode.MICROSECONDS): ("io.debezium.time.MicroTimestamp", 90_061_001_002),
    ("timestamp", -1, TimeMode.ADAPTIVE_TIME_MICROSECONDS): ("io.debezium.time.MicroTimestamp", 90_061_001_002),
    ("timestamp", -1, TimeMode.NANOSECONDS): ("io.debezium.time.NanoTimestamp", 90_061_001_002_000),
    ("timestamp", -1, TimeMode.CONNECT): ("org.apache.kafka.connect.data.Timestamp", Instant(90_061_001)),
}


@pytest.mark.parametrize(("asked", "expected"), SCHEMAS.items(), ids=str)
def test_the_schema_follows_mode_and_precision(asked: tuple[str, int, TimeMode], expected: tuple[str, object]) -> None:
    name, modifier, mode = asked
    codec = temporal_codec(name, modifier, ValueOptions(time=mode))
    assert codec is not None
    text = b"01:01:01.001002" if name == "time" else b"1970-01-02 01:01:01.001002"
    assert (codec.schema.name, codec.decode(text)) == expected


ZONED = {
    ("2024-02-29 12:34:56.789+00", 6): "2024-02-29T12:34:56.789000Z",
    ("2024-02-29 12:34:56+00", 6): "2024-02-29T12:34:56.000000Z",
    ("2024-02-29 12:34:56+00", 0): "2024-02-29T12:34:56Z",
    ("2024-02-29 12:34:56.7+00", 1): "2024-02-29T12:34:56.7Z",
    ("2024-02-29 00:30:00+02", 3): "2024-02-28T22:30:00.000Z",
    ("0044-03-15 12:00:00+00 BC", 6): "-0043-03-15T12:00:00.000000Z",
    ("12024-01-01 00:00:00+00", 6): "+12024-01-01T00:00:00.000000Z",
    ("infinity", 6): "infinity",
    ("-infinity", 6): "-infinity",
}


@pytest.mark.parametrize(("given_", "expected"), ZONED.items(), ids=str)
def test_timestamps_with_a_zone(given_: tuple[str, int], expected: str) -> None:
    assert zoned_timestamp(*given_) == expected


@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(1000, 1, 1)))
def test_timestamps_with_a_zone_have_the_columns_digits(value: datetime) -> None:
    text = value.replace(tzinfo=None).isoformat(" ")
    shown = zoned_timestamp(text.rstrip("0") + "+00" if "." in text else text + "+00", 6)
    assert datetime.fromisoformat(shown.replace("Z", "+00:00")) == value
    assert len(shown) == 27


TIMES = {
    "24:00:00+00": "24:00:00Z",
    "12:34:56.780+02": "10:34:56.78Z",
    "00:30:00+02": "22:30:00Z",
    "23:30:00-01:30": "01:00:00Z",
    "00:00:00+05:30:15": "18:29:45Z",
}


@pytest.mark.parametrize(("text", "expected"), TIMES.items())
def test_times_with_a_zone_are_moved_to_utc(text: str, expected: str) -> None:
    assert zoned_time(text) == expected


INTERVALS = {
    "PT0S": (0, "P0Y0M0DT0H0M0S"),
    "P1Y2M3DT4H5M6.789S": (37_091_106_789_000, "P1Y2M3DT4H5M6.789S"),
    "P-1DT2H": (-79_200_000_000, "P0Y0M-1DT2H0M0S"),
    "PT-0.5S": (-500_000, "P0Y0M0DT0H0M-0.5S"),
    "PT10S": (10_000_000, "P0Y0M0DT0H0M10S"),
    "infinity": ((1 << 63) - 1, "infinity"),
}


@pytest.mark.parametrize(("text", "expected"), INTERVALS.items())
def test_intervals(text: str, expected: tuple[int, str]) -> None:
    assert (interval_us(text), interval_text(text)) == expected
    for mode, value in zip((IntervalMode.NUMERIC, IntervalMode.STRING), expected, strict=True):
        codec = temporal_codec("interval", -1, ValueOptions(interval=mode))
        assert codec is not None
        assert codec.decode(text.encode()) == value


@pytest.mark.parametrize("name", ["date", "time", "timestamp", "timestamptz", "timetz", "interval"])
@pytest.mark.parametrize("text", [b"", b"x", b"2024-13-01", b"25:00", b"2024-02-30 00:00:00", b"P", b"\xff"])
def test_other_texts_are_errors(name: str, text: bytes) -> None:
    codec = temporal_codec(name, -1, ValueOptions())
    assert codec is not None
    with pytest.raises(ValueError):
        codec.decode(text)


@given(st.times())
def test_times_of_day(value: time) -> None:
    codec = temporal_codec("time", -1, ValueOptions())
    assert codec is not None
    midnight = datetime.combine(date(2000, 1, 1), time())
    assert codec.decode(value.isoformat().encode()) == (
        datetime.combine(date(2000, 1, 1), value) - midnight
    ) // timedelta(microseconds=1)
