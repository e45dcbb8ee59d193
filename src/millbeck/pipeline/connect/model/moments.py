"""Dates and times as a database writes them, of any year, in the calendar of ISO 8601 (Gregorian, proleptic).

Python's ``datetime`` ends with the year 9999 and has no year before 1; databases go further. Numbers are whole
microseconds since 1970, so that nothing is rounded on the way.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo
from typing import Final

US_PER_S: Final = 1_000_000
US_PER_DAY: Final = 86_400 * US_PER_S
_DATE: Final = re.compile(r"(\d{4,})-(\d\d)-(\d\d)", re.ASCII)
_TIME: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?", re.ASCII)
_OFFSET: Final = re.compile(r"([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?|Z", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1)


def days_from(year: int, month: int, day: int) -> int:
    """Days since 1970; the year before 1 is 0."""
    shifted = year - (month <= 2)
    of_year = (153 * ((month - 3) % 12) + 2) // 5 + day - 1
    return shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day: the inverse of `days_from`."""
    shifted = days + 719_468
    era, of_era = divmod(shifted, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def date_text(days: int) -> str:
    """``2024-02-29``; years before 1 as ``0044-03-15 BC``."""
    year, month, day = date_of(days)
    if year > 0:
        return f"{year:04}-{month:02}-{day:02}"
    return f"{1 - year:04}-{month:02}-{day:02} BC"


def time_text(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, US_PER_S)
    digits = f".{fraction:06}" if fraction else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{digits}"


def timestamp_text(microseconds: int, zone: tzinfo | None = None, *, with_offset: bool = False) -> str:
    """``2024-02-29 13:05:00.25+01:00``: the local time of a zone, UTC without one."""
    offset_s = 0 if zone is None else offset_seconds(microseconds, zone)
    days, of_day = divmod(microseconds + offset_s * US_PER_S, US_PER_DAY)
    date, _, era = date_text(days).partition(" ")
    sign, rest = ("-", -offset_s) if offset_s < 0 else ("+", offset_s)
    seconds = f":{rest % 60:02}" if rest % 60 else ""
    offset = f"{sign}{rest // 3600:02}:{rest // 60 % 60:02}{seconds}" if with_offset else ""
    return f"{date} {time_text(of_day)}{offset}{' ' + era if era else ''}"


def offset_seconds(microseconds: int, zone: tzinfo) -> int:
    """What a zone is ahead of UTC at a moment; beyond Python's years, as at their ends."""
    bounded = min(max(microseconds, -62_135_000_000 * US_PER_S), 253_402_000_000 * US_PER_S)
    moment = (_EPOCH + timedelta(microseconds=bounded)).replace(tzinfo=zone)
    found = zone.fromutc(moment).utcoffset()
    return 0 if found is None else found // timedelta(seconds=1)


def parsed_date(text: str) -> int:
    """Days since 1970. Raises ValueError, also for dates that do not exist, such as 0000-00-00."""
    body, is_bc = _without_era(text)
    match = _DATE.fullmatch(body)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a date")
    return _days(match, is_bc=is_bc, text=text)


def parsed_time(text: str) -> int:
    """Microseconds since midnight; 24:00:00 is allowed. Raises ValueError."""
    match = _TIME.fullmatch(text)
    found = -1 if match is None else _of_day(match)
    if not 0 <= found <= US_PER_DAY:
        raise ValueError(f"{text[:40]!r} is not a time of a day")
    return found


def parsed_timestamp(text: str, zone: tzinfo | None = None) -> int:
    """Microseconds since 1970. A text without an offset is local time of the zone, or UTC. Raises ValueError."""
    body, is_bc = _without_era(text)
    date = _DATE.match(body)
    time = None if date is None else _TIME.match(body, date.end() + 1)
    if date is None or time is None or body[date.end()] not in " T":
        raise ValueError(f"{text[:40]!r} is not a timestamp")
    local = _days(date, is_bc=is_bc, text=text) * US_PER_DAY + _of_day(time)
    rest = body[time.end() :]
    if rest:
        offset = _OFFSET.fullmatch(rest)
        if offset is None:
            raise ValueError(f"{text[:40]!r} is not a timestamp")
        hours, minutes, seconds = (int(offset[group] or 0) for group in (2, 3, 4))
        ahead = (hours * 3600 + minutes * 60 + seconds) * (-1 if offset[1] == "-" else 1)
        return local - ahead * US_PER_S
    return local if zone is None else utc_of_local(local, zone)


def utc_of_local(local: int, zone: tzinfo) -> int:
    """The moment of a local time. Of two, when clocks go back, the first; one that is skipped is moved on."""
    bounded = min(max(local, -62_135_000_000 * US_PER_S), 253_402_000_000 * US_PER_S)
    found = (_EPOCH + timedelta(microseconds=bounded)).replace(tzinfo=zone).utcoffset()
    return local - (0 if found is None else found // timedelta(seconds=1)) * US_PER_S


def _without_era(text: str) -> tuple[str, bool]:
    return (text[:-3], True) if text.endswith(" BC") else (text, False)


def _days(match: re.Match[str], *, is_bc: bool, text: str) -> int:
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    days = days_from(1 - year if is_bc else year, month, day)
    if (year == 0 and is_bc) or date_of(days) != (1 - year if is_bc else year, month, day):
        raise ValueError(f"{text[:40]!r} is not a date of any calendar")
    return days


def _of_day(match: re.Match[str]) -> int:
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3])
    if minutes > 59 or seconds > 59:
        return -1
    return (hours * 3600 + minutes * 60 + seconds) * US_PER_S + int((match[4] or "").ljust(6, "0")[:6])
