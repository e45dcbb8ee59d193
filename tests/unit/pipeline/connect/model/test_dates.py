"""Date formats: what the recorded answers do not cover."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from millbeck.pipeline.connect.model.dates import DateFormat, days_from


def test_every_day_has_the_date_of_the_gregorian_calendar() -> None:
    iso = DateFormat("yyyy-MM-dd")
    for days in range(-141_427, 200_000, 97):
        text = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days)).strftime("%Y-%m-%d")
        assert iso.format(days * 86_400_000) == text
        assert iso.parse(text) == days * 86_400_000


def test_before_october_1582_dates_are_of_the_julian_calendar() -> None:
    assert days_from(1582, 10, 4) + 1 == days_from(1582, 10, 15)
    assert DateFormat("yyyy-MM-dd").format(days_from(1500, 2, 29) * 86_400_000) == "1500-02-29"


def test_what_is_written_can_be_read() -> None:
    for pattern in (
        "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
        "EEE, d MMM yyyy KK:mm:ss.SSS a z",
        "yyyyMMddkkmmssSSS",
        "y D H m s S",
    ):
        for moment in (0, 1_700_000_123_456, 951_782_399_999, -86_400_001):
            assert DateFormat(pattern).parse(DateFormat(pattern).format(moment)) == moment, pattern


@pytest.mark.parametrize("pattern", ["yyyy-bb", "'open", "XXXX"])
def test_a_pattern_that_java_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|quote|ISO 8601"):
        DateFormat(pattern)


def test_week_years_can_only_be_written() -> None:
    assert DateFormat("YYYY-'W'ww-u").unreadable_letters == "Yuw"
    assert DateFormat("yyyy").unreadable_letters == ""


def test_hostile_texts_end() -> None:
    assert DateFormat("yyyy").parse("9" * 100_000) is not None
    assert DateFormat("MMM").parse("x" * 100_000) is None
