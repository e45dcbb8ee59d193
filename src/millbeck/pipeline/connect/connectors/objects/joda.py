"""Patterns of Joda-Time for the names of folders: ``'year'=YYYY/'month'=MM/'day'=dd``, in any time zone, in English."""

from __future__ import annotations

from datetime import tzinfo
from typing import Final, NamedTuple

from millbeck.pipeline.connect.model.moments import date_of, days_from, offset_seconds

_LETTERS: Final = frozenset("GCYyxMwedDEaHkKhmsSzZ")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MS_PER_DAY: Final = 86_400_000


class _Item(NamedTuple):
    letter: str
    width: int
    text: str


class JodaFormat:
    """A compiled pattern. Raises ValueError for one that Joda-Time would not take."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._items = tuple(_items(pattern))

    def format(self, milliseconds: int, zone: tzinfo) -> str:
        offset_s = offset_seconds(milliseconds * 1000, zone)
        days, of_day = divmod(milliseconds + offset_s * 1000, _MS_PER_DAY)
        return "".join(
            item.text if not item.letter else _field(item, days, of_day, offset_s, zone) for item in self._items
        )


def _items(pattern: str) -> list[_Item]:
    found: list[_Item] = []
    place = 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == "'":
            end = pattern.find("'", place + 1)
            if end < 0:
                raise ValueError("a quote is not closed")
            found.append(_Item("", 0, pattern[place + 1 : end] or "'"))
            place = end + 1
        elif letter.isascii() and letter.isalpha():
            if letter not in _LETTERS:
                raise ValueError(f"Illegal pattern component: {letter}; put texts in single quotes")
            width = len(pattern) - place - len(pattern[place:].lstrip(letter))
            found.append(_Item(letter, width, ""))
            place += width
        else:
            found.append(_Item("", 0, letter))
            place += 1
    return found


def _field(item: _Item, days: int, of_day: int, offset_s: int, zone: tzinfo) -> str:
    letter, width = item.letter, item.width
    year, month, day = date_of(days)
    weekday = (days + 3) % 7  # 0 is Monday
    match letter:
        case "G":
            return "AD" if year > 0 else "BC"
        case "C":
            return str((year if year > 0 else 1 - year) // 100).zfill(width)
        case "Y":
            return _year(year if year > 0 else 1 - year, width)
        case "y":
            return _year(year, width)
        case "x":
            return _year(_week_year(days, weekday), width)
        case "M" if width >= 3:
            return _MONTHS[month - 1] if width > 3 else _MONTHS[month - 1][:3]
        case "E":
            return _DAYS[weekday] if width > 3 else _DAYS[weekday][:3]
        case "a":
            return "AM" if of_day < _MS_PER_DAY // 2 else "PM"
        case "S":
            return f"{of_day % 1000:03}".ljust(width, "0")[:width]
        case "z":
            return str(getattr(zone, "key", "UTC"))
        case "Z":
            return _offset(offset_s, width, zone)
    hour = of_day // 3_600_000
    number = {
        "M": month,
        "d": day,
        "D": days - days_from(year, 1, 1) + 1,
        "e": weekday + 1,
        "w": (days - weekday + 3 - days_from(_week_year(days, weekday), 1, 1)) // 7 + 1,
        "H": hour,
        "k": hour or 24,
        "K": hour % 12,
        "h": hour % 12 or 12,
        "m": of_day // 60_000 % 60,
        "s": of_day // 1000 % 60,
    }[letter]
    return str(number).zfill(width)


def _year(year: int, width: int) -> str:
    if width == 2:
        return str(abs(year) % 100).zfill(2)
    return str(year).zfill(width) if year >= 0 else f"-{str(-year).zfill(width)}"


def _week_year(days: int, weekday: int) -> int:
    """The year that the Thursday of the week is in."""
    return date_of(days - weekday + 3)[0]


def _offset(offset_s: int, width: int, zone: tzinfo) -> str:
    if width > 2:
        return str(getattr(zone, "key", "UTC"))
    sign, rest = ("-", -offset_s) if offset_s < 0 else ("+", offset_s)
    colon = ":" if width == 2 else ""
    return f"{sign}{rest // 3600:02}{colon}{rest // 60 % 60:02}"
