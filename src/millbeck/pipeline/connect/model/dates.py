"""Date formats as in Java's SimpleDateFormat, in UTC and English: ``yyyy-MM-dd'T'HH:mm:ss.SSSX``.

Parsing is as lenient as Java's: a 13th month is January of the next year, and what follows the last field is ignored.
Dates before 15 October 1582 are of the Julian calendar.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MS_PER_DAY: Final = 86_400_000
_LETTERS: Final = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
_NOT_PARSED: Final = frozenset("YwWFu")
_NUMERIC: Final = frozenset("yYMLwWDdFuHkKhmsS")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_GREGORIAN_START: Final = -141_427
"""15 October 1582, in days since 1970."""
_NUMBER: Final = re.compile(r"[ \t]*(-?[0-9]{1,18})", re.ASCII)
_OFFSET: Final = re.compile(r"(?:GMT|UTC)?([+-])([0-9]{1,2}):?([0-9]{2})?", re.ASCII)
_CENTURY_START: Final = 1946
"""Years of two digits are those of a hundred years from here on."""


class _Item(NamedTuple):
    """A run of one pattern letter, or a text that stands for itself (``letter`` is empty)."""

    letter: str
    width: int
    text: str

    @property
    def is_digits(self) -> bool:
        return bool(self.letter) and self.letter in _NUMERIC and not (self.letter in "ML" and self.width >= 3)


class DateFormat:
    """A compiled pattern. Raises ValueError for a pattern that Java would not take either."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._items = tuple(_items(pattern))

    @property
    def unreadable_letters(self) -> str:
        """The letters that can be written but not read: week years and the like."""
        return "".join(sorted({item.letter for item in self._items} & _NOT_PARSED))

    def format(self, milliseconds: int) -> str:
        days, of_day = divmod(milliseconds, MS_PER_DAY)
        moment = _Moment(days, of_day)
        return "".join(moment.field(item) if item.letter else item.text for item in self._items)

    def parse(self, text: str) -> int | None:
        """Milliseconds since 1970; None when the text does not begin with this format."""
        fields: dict[str, int] = {}
        place = 0
        for index, item in enumerate(self._items):
            if not item.letter:
                if not text.startswith(item.text, place):
                    return None
                place += len(item.text)
                continue
            following = self._items[index + 1] if index + 1 < len(self._items) else None
            end = _parsed_field(
                item, text, place, fields, has_fixed_width=following is not None and following.is_digits
            )
            if end is None:
                return None
            place = end
        return _combined(fields)


def _items(pattern: str) -> list[_Item]:
    found: list[_Item] = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == "'":
            end = pattern.find("'", place + 1)
            if end < 0:
                raise ValueError("Unterminated quote")
            text = pattern[place + 1 : end] or "'"
            while pattern.startswith("'", end + 1) and end > place + 1:  # '' inside quotes is one quote
                next_end = pattern.find("'", end + 2)
                if next_end < 0:
                    raise ValueError("Unterminated quote")
                text += "'" + pattern[end + 2 : next_end]
                end = next_end
            found.append(_Item("", 0, text))
            place = end + 1
        elif character.isascii() and character.isalpha():
            if character not in _LETTERS:
                raise ValueError(f"Illegal pattern character '{character}'")
            count = len(pattern) - place - len(pattern[place:].lstrip(character))
            if character == "X" and count > 3:
                raise ValueError(f"invalid ISO 8601 format: length={count}")
            found.append(_Item(character, count, ""))
            place += count
        else:
            found.append(_Item("", 0, character))
            place += 1
    return found


class _Moment:
    def __init__(self, days: int, of_day: int) -> None:
        self._days = days
        self._of_day = of_day
        self._year, self._month, self._day = _date_of(days)
        self._weekday = (days + 4) % 7  # 0 is Sunday

    def field(self, item: _Item) -> str:
        letter, count = item.letter, item.width
        match letter:
            case "G":
                return "AD" if self._year > 0 else "BC"
            case "y":
                return _year_text(self._year if self._year > 0 else 1 - self._year, count)
            case "Y":
                return _year_text(self._week_year(), count)
            case "M" | "L" if count >= 3:
                name = _MONTHS[self._month - 1]
                return name if count > 3 else name[:3]
            case "E":
                name = _DAYS[self._weekday]
                return name if count > 3 else name[:3]
            case "a":
                return "AM" if self._of_day < MS_PER_DAY // 2 else "PM"
            case "z":
                return "Coordinated Universal Time" if count > 3 else "UTC"
            case "Z":
                return "+0000"
            case "X":
                return "Z"
        return str(self._number(letter)).zfill(count)

    def _number(self, letter: str) -> int:
        hour = self._of_day // 3_600_000
        match letter:
            case "M" | "L":
                return self._month
            case "d":
                return self._day
            case "D":
                return self._day_of_year()
            case "F":
                return (self._day - 1) // 7 + 1
            case "u":
                return self._weekday or 7
            case "w":
                return self._week_of_year()
            case "W":
                first = (self._days - self._day + 1 + 4) % 7
                return (self._day + first - 1) // 7 + 1
            case "H":
                return hour
            case "k":
                return hour or 24
            case "K":
                return hour % 12
            case "h":
                return hour % 12 or 12
            case "m":
                return self._of_day // 60_000 % 60
            case "s":
                return self._of_day // 1000 % 60
        return self._of_day % 1000

    def _day_of_year(self) -> int:
        return self._days - days_from(self._year, 1, 1) + 1

    def _week_of_year(self) -> int:
        if self._week_year() != self._year:
            return 1
        first = (days_from(self._year, 1, 1) + 4) % 7
        return (self._day_of_year() + first - 1) // 7 + 1

    def _week_year(self) -> int:
        """Weeks begin on Sunday, and the first of a year is the one with the first of January."""
        next_year = days_from(self._year + 1, 1, 1)
        return self._year + (self._days - self._weekday + 7 > next_year)


def _year_text(year: int, count: int) -> str:
    return str(year % 100).zfill(2) if count == 2 else str(year).zfill(count)


def days_from(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date; month and day may be out of their ranges. The year before 1 is 0."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    gregorian = _days_from(year, month, is_gregorian=True) + day - 1
    return gregorian if gregorian >= _GREGORIAN_START else _days_from(year, month, is_gregorian=False) + day - 1


def _days_from(year: int, month: int, *, is_gregorian: bool) -> int:
    """Days since 1970 of the first of a month."""
    shifted = year - (month <= 2)
    of_year = (153 * ((month - 3) % 12) + 2) // 5
    leap_days = shifted // 4 - shifted // 100 + shifted // 400 if is_gregorian else shifted // 4 - 2
    return shifted * 365 + leap_days + of_year - 719_468


def _date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day; the inverse of `days_from`."""
    is_gregorian = days >= _GREGORIAN_START
    year = 1970 + days // 366 - 2 if days >= 0 else 1970 + days // 365 - 2
    while _days_from(year + 1, 1, is_gregorian=is_gregorian) <= days:
        step = (days - _days_from(year + 1, 1, is_gregorian=is_gregorian)) // 366
        year += max(step, 1)
    month = 12
    while _days_from(year, month, is_gregorian=is_gregorian) > days:
        month -= 1
    return year, month, days - _days_from(year, month, is_gregorian=is_gregorian) + 1


def _parsed_field(item: _Item, text: str, place: int, fields: dict[str, int], *, has_fixed_width: bool) -> int | None:
    """Put the field's number into ``fields``; returns the place behind it, None when it is not there."""
    while text[place : place + 1] in (" ", "\t"):
        place += 1
    letter, count = item.letter, item.width
    names: tuple[str, ...] = ()
    if letter in "ML" and count >= 3:
        names = _MONTHS
    elif letter == "E":
        names = _DAYS
    elif letter in "aG":
        names = ("AM", "PM") if letter == "a" else ("BC", "AD")
    if names:
        return _parsed_name(letter, names, text, place, fields)
    if letter in "zZX":
        return _parsed_zone(letter, text, place, fields)
    limit = place + count if has_fixed_width else len(text)
    match = _NUMBER.match(text, place, limit)
    if match is None:
        return None
    number = int(match[1])
    if letter == "y" and count <= 2 and match.end() - place == 2 and number >= 0:
        number += _CENTURY_START - _CENTURY_START % 100
        number += 100 * (number < _CENTURY_START)
    fields["M" if letter == "L" else letter] = number
    return match.end()


def _parsed_name(letter: str, names: tuple[str, ...], text: str, place: int, fields: dict[str, int]) -> int | None:
    for number, name in enumerate(names):
        for known in (name, name[:3]):
            if text[place : place + len(known)].lower() == known.lower():
                fields["M" if letter == "L" else letter] = number + (letter in "ML")
                return place + len(known)
    return None


def _parsed_zone(letter: str, text: str, place: int, fields: dict[str, int]) -> int | None:
    match = _OFFSET.match(text, place)
    if match is not None:
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        fields["Z"] = minutes if match[1] == "+" else -minutes
        return match.end()
    for name in ("Z",) if letter == "X" else ("UTC", "GMT"):
        if text.startswith(name, place):
            fields["Z"] = 0
            return place + len(name)
    return None


def _combined(fields: dict[str, int]) -> int:
    year = fields.get("y", 1970)
    if fields.get("G") == 0:
        year = 1 - year
    if "D" in fields and "M" not in fields:
        days = days_from(year, 1, 1) + fields["D"] - 1
    else:
        days = days_from(year, fields.get("M", 1), fields.get("d", 1))
    hour = fields.get("H", 0) + fields.get("k", 0) % 24
    if "h" in fields or "K" in fields:
        hour += fields.get("h", 0) % 12 + fields.get("K", 0) + 12 * fields.get("a", 0)
    minutes = hour * 60 + fields.get("m", 0) - fields.get("Z", 0)
    return days * MS_PER_DAY + (minutes * 60 + fields.get("s", 0)) * 1000 + fields.get("S", 0)
