"""Dates and times as texts, against Python's own where it has them, and beyond its years."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from millbeck.pipeline.connect.model.moments import (
    US_PER_DAY,
    date_of,
    date_text,
    days_from,
    parsed_date,
    parsed_time,
    parsed_timestamp,
    time_text,
    timestamp_text,
)

_EPOCH = date(1970, 1, 1)


def test_days_are_pythons_from_year_1_to_9999() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        day = date.fromordinal(chance.randint(1, date.max.toordinal()))
        days = (day - _EPOCH).days
        assert days_from(day.year, day.month, day.day) == days
        assert date_of(days) == (day.year, day.month, day.day)
        assert date_text(days) == day.isoformat()


def test_texts_are_read_as_they_are_written_in_any_year() -> None:
    chance = random.Random(4)
    for _ in range(2000):
        days = chance.randint(-2_000_000, 100_000_000)
        assert parsed_date(date_text(days)) == days
        moment = days * US_PER_DAY + chance.randrange(US_PER_DAY)
        assert parsed_timestamp(timestamp_text(moment)) == moment
        assert parsed_timestamp(timestamp_text(moment, with_offset=True)) == moment
        of_day = chance.randrange(US_PER_DAY)
        assert parsed_time(time_text(of_day)) == of_day


def test_local_times_are_those_of_the_zone() -> None:
    zone = ZoneInfo("Europe/Berlin")
    for moment in range(1_711_800_000, 1_711_900_000, 1800):  # clocks go forward on 31 March 2024
        at = datetime.fromtimestamp(moment, UTC).astimezone(zone)
        text = timestamp_text(moment * 1_000_000, zone, with_offset=True)
        assert text == at.isoformat(sep=" ", timespec="seconds")
        assert parsed_timestamp(text) == moment * 1_000_000
        assert parsed_timestamp(text[:19], zone) == moment * 1_000_000
    # Zones before standard time have seconds.
    assert timestamp_text(-3_000_000_000 * 1_000_000, zone, with_offset=True).endswith("+00:53:28")


def test_far_years_have_the_zones_outermost_offset() -> None:
    zone = ZoneInfo("America/New_York")
    for days in (-1_000_000, 5_000_000):
        moment = days * US_PER_DAY
        assert parsed_timestamp(timestamp_text(moment, zone), zone) == moment


@pytest.mark.parametrize(
    "text", ["0000-00-00", "2023-02-29", "2024-13-01", "0000-01-01 BC", "24-01-01", "", "infinity"]
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a date"):
        parsed_date(text)


@pytest.mark.parametrize("text", ["25:00:00", "-01:00:00", "838:59:59", "10:60:00", "10:00", "24:00:00.000001"])
def test_what_is_no_time_of_a_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time of a day"):
        parsed_time(text)


@pytest.mark.parametrize(
    "text", ["2024-01-01", "2024-01-01x10:00:00", "2024-01-01 10:00:00 CET", "0000-00-00 00:00:00"]
)
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        parsed_timestamp(text)


def test_one_day_later() -> None:
    assert parsed_timestamp("2024-02-28T23:59:59.999999Z") + 1 == parsed_timestamp("2024-02-29 00:00:00")
    assert date.fromisoformat("2024-02-29") - timedelta(days=1) == date(2024, 2, 28)
