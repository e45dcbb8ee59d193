"""Raw changes on their way to a task: messages of the stream, with the tables that they are about.

A share begins with a JSON object and its size; then come entries: the position of the change in the log, the number of
the table's shape, a size, and the message as the server sent it. Shapes are numbered since one table may have several
in one share. Entries that are no row have the number 0.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.postgres.tables import Table

_SIZE: Final = struct.Struct(">I")
_ENTRY: Final = struct.Struct(">QII")
ENTRY_OVERHEAD: Final = _ENTRY.size
HEARTBEAT: Final = b"H"[0]
"""The kind of an entry that is not the server's: a heartbeat is due here."""


class ChangeEntry(NamedTuple):
    lsn: int
    shape: int
    message: bytes


def entry_of(lsn: int, shape: int, message: bytes) -> bytes:
    return _ENTRY.pack(lsn, shape, len(message)) + message


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """Where the stream goes on: the offset in the log, with Debezium's names.

    ``commit_lsn`` is the end of the last transaction that is in the log. ``read_at`` is there as long as the stream has
    changes that a snapshot has seen: tables with the upper ends of their keys and the positions up to which those rows
    were seen.
    """

    commit_lsn: int
    lsn: int
    transaction_id: int | None = None
    time_us: int | None = None
    message_type: str | None = None
    read_at: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        made = {
            "lsn_proc": self.commit_lsn,
            "lsn_commit": self.commit_lsn,
            "lsn": self.lsn,
            "txId": self.transaction_id,
            "ts_usec": self.time_us,
            "messageType": self.message_type,
            "millbeck.read_at": self.read_at,
        }
        return {name: value for name, value in made.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeader:
    """``start`` is the committed offset before the share, ``end`` the one behind it; ``now_ms`` when it was cut."""

    tables: Mapping[int, Table]
    start: Mapping[str, Any]
    end: Mapping[str, Any]
    now_ms: int

    def as_bytes(self) -> bytes:
        text = json.dumps(
            {
                "tables": {str(shape): table.as_json() for shape, table in self.tables.items()},
                "start": dict(self.start),
                "end": dict(self.end),
                "now_ms": self.now_ms,
            }
        ).encode()
        return _SIZE.pack(len(text)) + text


def header_of(data: bytes) -> tuple[ShareHeader, int]:
    """The header of a share, and where its entries begin."""
    try:
        (size,) = _SIZE.unpack_from(data)
        found = json.loads(data[_SIZE.size : _SIZE.size + size])
    except (struct.error, ValueError):
        raise InvalidValue("a share of changes has no header") from None
    tables = {int(shape): Table.from_json(table) for shape, table in found["tables"].items()}
    header = ShareHeader(tables=tables, start=found["start"], end=found["end"], now_ms=found["now_ms"])
    return header, _SIZE.size + size


def entries_of(data: bytes, position: int = 0) -> Iterator[ChangeEntry]:
    """The entries of whole bytes. Raises `InvalidValue` for a rest that is none."""
    size = len(data)
    while position < size:
        if position + ENTRY_OVERHEAD > size:
            raise InvalidValue("a share of changes is cut off")
        lsn, shape, length = _ENTRY.unpack_from(data, position)
        start = position + ENTRY_OVERHEAD
        position = start + length
        if position > size:
            raise InvalidValue("a share of changes is cut off")
        yield ChangeEntry(lsn, shape, data[start:position])


def entry_size(head: bytes) -> int:
    """The size of the message whose entry begins with these bytes."""
    size: int = _ENTRY.unpack(head)[2]
    return size


def entry_with(head: bytes, message: bytes) -> ChangeEntry:
    lsn, shape, _ = _ENTRY.unpack(head)
    return ChangeEntry(lsn, shape, message)
