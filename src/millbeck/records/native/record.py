"""`Record`: one record of a batch as an object."""

from __future__ import annotations

from typing import Final

Header = tuple[str, bytes | None]
"""A header's name and value. Bytes of a name that are not UTF-8 are kept as surrogate escapes."""

UNASSIGNED: Final = -1
"""Offset of a record that has none yet: it gets the one after the record before it."""

NO_TIMESTAMP: Final = -1


class Record:
    """One record. Headers keep their order and duplicates."""

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...] = (),
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (
            self.offset == other.offset
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.timestamp, self.key, self.value))

    def __repr__(self) -> str:
        return f"Record({self.offset}, {self.timestamp}, {self.key!r}, {self.value!r}, {self.headers!r})"
