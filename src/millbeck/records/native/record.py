"""`Record`: one record of a batch as an object."""

from __future__ import annotations

from typing import Final, Generic

from millbeck.records.typevars import K, V

Header = tuple[str, bytes | None]
"""A header's name and value. Bytes of a name that are not UTF-8 are kept as surrogate escapes."""

UNASSIGNED: Final = -1
"""Offset of a record that has none yet: it gets the one after the record before it."""

NO_TIMESTAMP: Final = -1


class RecordSource:
    """The batch that a client read a record from: one object for all records of the batch."""

    __slots__ = ("leader_epoch", "partition", "timestamp_type", "topic")

    def __init__(self, topic: str, partition: int, leader_epoch: int = -1, timestamp_type: int = 0) -> None:
        self.topic: Final = topic
        self.partition: Final = partition
        self.leader_epoch: Final = leader_epoch
        self.timestamp_type: Final = timestamp_type
        """The timestamp type: 0 CreateTime, 1 LogAppendTime."""


NOWHERE: Final = RecordSource("", -1)
"""The source of a record that was not read from a topic."""


class Record(Generic[K, V]):
    """One record; it does not change. Headers keep their order and duplicates."""

    __slots__ = ("headers", "key", "offset", "source", "timestamp", "value")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: K | None,
        value: V | None,
        headers: tuple[Header, ...] = (),
        source: RecordSource = NOWHERE,
    ) -> None:
        self.offset: Final = offset
        self.timestamp: Final = timestamp
        self.key: Final = key
        self.value: Final = value
        self.headers: Final = headers
        self.source: Final = source

    @property
    def topic(self) -> str:
        """The topic it was read from; empty for a record that was not read from one."""
        return self.source.topic

    @property
    def partition(self) -> int:
        return self.source.partition

    @property
    def leader_epoch(self) -> int:
        """The leader epoch in which it was stored; -1 if unknown."""
        return self.source.leader_epoch

    @property
    def timestamp_type(self) -> int:
        """0: set by the producer (CreateTime), 1: by the broker (LogAppendTime)."""
        return self.source.timestamp_type

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
