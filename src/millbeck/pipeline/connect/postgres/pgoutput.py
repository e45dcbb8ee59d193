"""Messages of the output plugin pgoutput, protocol version 1 without streaming of open transactions.

The server is trusted with what it says, not with how much: each length is checked against the bytes that are there.
Values are in text form, in the encoding of the session, which is UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from millbeck.pipeline.connect.postgres.replication_frames import POSTGRES_EPOCH_US, ProtocolError

_INT16: Final = struct.Struct(">H")
_INT32: Final = struct.Struct(">I")
_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">BQQq")
_COLUMN: Final = struct.Struct(">Ii")
_MESSAGE: Final = struct.Struct(">BQ")
COLUMNS_MAX: Final = 1664
"""PostgreSQL's own limit of columns in a row."""


class Unchanged(Enum):
    """The value of a large column that an update left alone: the log does not have it."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Cell = bytes | None | Unchanged
Cells = Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Begin:
    """``final_lsn`` is where the commit record begins; times are in microseconds since 1970."""

    final_lsn: int
    commit_time_us: int
    transaction_id: int


@dataclass(frozen=True, slots=True)
class Commit:
    """``end_lsn`` is the position behind the transaction: a stream that starts there does not have it again."""

    commit_lsn: int
    end_lsn: int
    commit_time_us: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    name: str
    type_oid: int
    type_modifier: int
    is_key: bool


class ReplicaIdentity(Enum):
    """What old rows in the log hold."""

    DEFAULT = "d"
    NOTHING = "n"
    FULL = "f"
    INDEX = "i"


@dataclass(frozen=True, slots=True)
class Relation:
    """What a table looks like in the changes that follow."""

    oid: int
    schema: str
    name: str
    replica_identity: ReplicaIdentity
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class TypeName:
    oid: int
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    commit_lsn: int
    name: str


@dataclass(frozen=True, slots=True)
class Insert:
    relation: int
    new: Cells


@dataclass(frozen=True, slots=True)
class Update:
    """``old`` is there when the key has changed or the replica identity is full; else None. In the row of a key, all
    columns outside the key are None.
    """

    relation: int
    old: Cells | None
    is_old_whole: bool
    new: Cells


@dataclass(frozen=True, slots=True)
class Delete:
    relation: int
    old: Cells
    is_old_whole: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    relations: tuple[int, ...]
    cascades: bool
    restarts_identity: bool


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    """What ``pg_logical_emit_message`` wrote. It may stand outside a transaction."""

    is_transactional: bool
    lsn: int
    prefix: str
    content: bytes


Message = Begin | Commit | Relation | TypeName | Origin | Insert | Update | Delete | Truncate | LogicalMessage

BEGIN, COMMIT, RELATION, TYPE, ORIGIN = b"B"[0], b"C"[0], b"R"[0], b"Y"[0], b"O"[0]
INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE = b"I"[0], b"U"[0], b"D"[0], b"T"[0], b"M"[0]
ROW_KINDS: Final = frozenset((INSERT, UPDATE, DELETE))


def relation_of(data: bytes) -> int:
    """The table of an insert, update or delete, without reading its rows."""
    if len(data) < 5:
        raise _truncated(data)
    found: int = _INT32.unpack_from(data, 1)[0]
    return found


def message_of(data: bytes) -> Message:
    """Raises `ProtocolError`."""
    if not data:
        raise ProtocolError("the replication stream has an empty message")
    try:
        return _message_of(data)
    except (struct.error, IndexError):
        raise _truncated(data) from None
    except UnicodeDecodeError:
        raise ProtocolError("the replication stream has a name that is not UTF-8") from None


def _truncated(data: bytes) -> ProtocolError:
    return ProtocolError(f"the replication stream has a truncated message of kind {data[:1]!r}")


def _message_of(data: bytes) -> Message:
    kind = data[0]
    if kind == INSERT:
        if data[5] != 0x4E:  # N
            raise ProtocolError("an insert of the replication stream has no new row")
        new, end = _cells(data, 6)
        return _ended(data, end, Insert(_INT32.unpack_from(data, 1)[0], new))
    if kind == UPDATE:
        return _update(data)
    if kind == DELETE:
        mark = data[5]
        if mark not in b"KO":
            raise ProtocolError("a delete of the replication stream has no old row")
        old, end = _cells(data, 6)
        return _ended(data, end, Delete(_INT32.unpack_from(data, 1)[0], old, mark == 0x4F))
    return _other(kind, data)


def _update(data: bytes) -> Message:
    old: list[Cell] | None = None
    mark, position = data[5], 6
    is_whole = mark == 0x4F  # O
    if is_whole or mark == 0x4B:  # K
        old, position = _cells(data, position)
        mark, position = data[position], position + 1
    if mark != 0x4E:
        raise ProtocolError("an update of the replication stream has no new row")
    new, end = _cells(data, position)
    return _ended(data, end, Update(_INT32.unpack_from(data, 1)[0], old, is_whole, new))


def _other(kind: int, data: bytes) -> Message:
    if kind == BEGIN:
        final_lsn, time, transaction_id = _BEGIN.unpack_from(data, 1)
        return _ended(data, 21, Begin(final_lsn, time + POSTGRES_EPOCH_US, transaction_id))
    if kind == COMMIT:
        _, commit_lsn, end_lsn, time = _COMMIT.unpack_from(data, 1)
        return _ended(data, 26, Commit(commit_lsn, end_lsn, time + POSTGRES_EPOCH_US))
    if kind == RELATION:
        return _relation(data)
    if kind == TYPE:
        schema, position = _text(data, 5)
        name, position = _text(data, position)
        return _ended(data, position, TypeName(_INT32.unpack_from(data, 1)[0], schema, name))
    if kind == ORIGIN:
        name, position = _text(data, 9)
        return _ended(data, position, Origin(struct.unpack_from(">Q", data, 1)[0], name))
    if kind == TRUNCATE:
        (count,) = _INT32.unpack_from(data, 1)
        options = data[5]
        if len(data) != 6 + 4 * count:
            raise _truncated(data)
        return Truncate(struct.unpack_from(f">{count}I", data, 6), bool(options & 1), bool(options & 2))
    if kind == MESSAGE:
        flags, lsn = _MESSAGE.unpack_from(data, 1)
        prefix, position = _text(data, 10)
        (size,) = _INT32.unpack_from(data, position)
        return _ended(data, position + 4 + size, LogicalMessage(bool(flags & 1), lsn, prefix, data[position + 4 :]))
    raise ProtocolError(f"the replication stream has a message of kind {data[:1]!r}, which version 1 does not have")


def _ended(data: bytes, position: int, message: Message) -> Message:
    if position != len(data):
        raise _truncated(data)
    return message


def _text(data: bytes, position: int) -> tuple[str, int]:
    end = data.find(b"\0", position)
    if end < 0:
        raise _truncated(data)
    return data[position:end].decode(), end + 1


def _relation(data: bytes) -> Message:
    schema, position = _text(data, 5)
    name, position = _text(data, position)
    try:
        identity = ReplicaIdentity(chr(data[position]))
    except ValueError:
        raise ProtocolError(f"the table {name} has an unknown replica identity") from None
    (count,) = _INT16.unpack_from(data, position + 1)
    if count > COLUMNS_MAX:
        raise ProtocolError(f"the table {name} has {count} columns")
    position += 3
    columns: list[RelationColumn] = []
    for _ in range(count):
        flags = data[position]
        column, position = _text(data, position + 1)
        type_oid, modifier = _COLUMN.unpack_from(data, position)
        position += 8
        columns.append(RelationColumn(column, type_oid, modifier, bool(flags & 1)))
    # In the system's own schema, the name of the schema is empty.
    made = Relation(_INT32.unpack_from(data, 1)[0], schema or "pg_catalog", name, identity, tuple(columns))
    return _ended(data, position, made)


def _cells(data: bytes, position: int) -> tuple[list[Cell], int]:
    """The values of a row, and the position behind it."""
    (count,) = _INT16.unpack_from(data, position)
    if count > COLUMNS_MAX:
        raise ProtocolError(f"the replication stream has a row of {count} columns")
    position += 2
    cells: list[Cell] = []
    size = len(data)
    for _ in range(count):
        kind = data[position]
        if kind == 0x74:  # t
            start = position + 5
            position = start + int.from_bytes(data[position + 1 : start], "big")
            if position > size:
                raise _truncated(data)
            cells.append(data[start:position])
        elif kind == 0x6E:  # n
            cells.append(None)
            position += 1
        elif kind == 0x75:  # u
            cells.append(UNCHANGED)
            position += 1
        else:
            raise ProtocolError(f"the replication stream has a value of kind {chr(kind)!r}, not text")
    return cells, position
