"""`Record`: one record of a batch as an object."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any, Final

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

    def __reduce__(self) -> tuple[object, ...]:
        return RecordSource, (self.topic, self.partition, self.leader_epoch, self.timestamp_type)


NOWHERE: Final = RecordSource("", -1)
"""The source of a record that was not read from a topic."""


class Record:
    """One immutable record. Headers keep their order and duplicates.

    Its key and value are bytes, or what a client's deserializers made of them: for type checkers it is generic, as
    declared in `millbeck.records.record`. It is not generic itself, since instances would get a ``__dict__`` for that.
    """

    __slots__ = ("headers", "key", "offset", "source", "timestamp", "value")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: object,
        value: object,
        headers: tuple[Header, ...] = (),
        source: RecordSource = NOWHERE,
    ) -> None:
        self.offset: Final = offset
        self.timestamp: Final = timestamp
        self.key: Final = key
        self.value: Final = value
        self.headers: Final = headers
        self.source: Final = source

    @classmethod
    def __class_getitem__(cls, types: object) -> object:
        return cls

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

    def __reduce__(self) -> tuple[object, ...]:
        return Record, (self.offset, self.timestamp, self.key, self.value, self.headers, self.source)

    def __repr__(self) -> str:
        return f"Record({self.offset}, {self.timestamp}, {self.key!r}, {self.value!r}, {self.headers!r})"


def new_record(
    offset: int, timestamp: int, key: object, value: object, headers: tuple[Header, ...], source: RecordSource
) -> Record:
    """The constructor for decoders: a call of the class costs the Python file twice as much."""
    return Record(offset, timestamp, key, value, headers, source)


def new_records(
    offsets: Iterable[int],
    timestamps: Iterable[int],
    keys: Iterable[bytes | None],
    values: Iterable[bytes | None],
    source: RecordSource,
) -> list[Record]:
    """Records without headers, from columns; the shortest column counts."""
    columns = zip(offsets, timestamps, keys, values, strict=False)
    return [Record(offset, timestamp, key, value, (), source) for offset, timestamp, key, value in columns]


def _make_read_only(kind: Any) -> tuple[Any, Any]:
    """Refuse assignments after the constructor, as the compiler does for final attributes.

    Returns `new_record` and `new_records`: there a record is filled as an instance of a class with the same slots, and
    then becomes one of the read-only class.
    """

    def fill(self: Any, offset: int, timestamp: int, key: Any, value: Any, headers: Any, source: Any) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.source = source

    filled: Any = type("Filled", (), {"__slots__": kind.__slots__, "__init__": fill})

    def one(offset: int, timestamp: int, key: Any, value: Any, headers: Any, source: Any) -> Any:
        record = filled(offset, timestamp, key, value, headers, source)
        record.__class__ = kind
        return record

    def several(offsets: Any, timestamps: Any, keys: Any, values: Any, source: Any) -> Any:
        records = list(map(filled, offsets, timestamps, keys, values, repeat(()), repeat(source)))
        for record in records:
            record.__class__ = kind
        return records

    set_offset = kind.offset.__set__
    set_timestamp = kind.timestamp.__set__
    set_key = kind.key.__set__
    set_value = kind.value.__set__
    set_headers = kind.headers.__set__
    set_source = kind.source.__set__

    def init(
        self: Any,
        offset: int,
        timestamp: int,
        key: Any,
        value: Any,
        headers: tuple[Header, ...] = (),
        source: RecordSource = NOWHERE,
    ) -> None:
        set_offset(self, offset)
        set_timestamp(self, timestamp)
        set_key(self, key)
        set_value(self, value)
        set_headers(self, headers)
        set_source(self, source)

    def refuse(self: Any, name: str, value: Any) -> None:
        raise AttributeError(f"records are immutable: {name} cannot be set")

    kind.__init__ = init
    kind.__setattr__ = refuse
    return one, several


if __file__.endswith(".py"):
    globals()["new_record"], globals()["new_records"] = _make_read_only(Record)
