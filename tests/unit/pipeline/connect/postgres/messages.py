"""Messages of pgoutput as a server writes them, and settings of a connector."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from millbeck.pipeline.connect.postgres.options import POSTGRES_OPTIONS
from millbeck.pipeline.connect.postgres.pgoutput import UNCHANGED, Cell
from millbeck.pipeline.connect.postgres.replication_frames import POSTGRES_EPOCH_US
from millbeck.pipeline.connect.postgres.settings import PostgresSettings
from millbeck.pipeline.connect.postgres.tables import Column, ColumnType, Table, TableId

INT4, TEXT = 23, 25


def begin(final_lsn: int, xid: int, time_us: int = 1_700_000_000_000_000) -> bytes:
    return b"B" + struct.pack(">QqI", final_lsn, time_us - POSTGRES_EPOCH_US, xid)


def commit(lsn: int, end_lsn: int, time_us: int = 1_700_000_000_000_000) -> bytes:
    return b"C" + struct.pack(">BQQq", 0, lsn, end_lsn, time_us - POSTGRES_EPOCH_US)


def relation(
    oid: int, schema: str, name: str, columns: Sequence[tuple[str, int, int, bool]], identity: str = "d"
) -> bytes:
    """Columns are name, type, modifier and whether they are of the key."""
    made = b"R" + struct.pack(">I", oid) + schema.encode() + b"\0" + name.encode() + b"\0" + identity.encode()
    made += struct.pack(">H", len(columns))
    for column, kind, modifier, is_key in columns:
        made += bytes((is_key,)) + column.encode() + b"\0" + struct.pack(">Ii", kind, modifier)
    return made


def cells(values: Sequence[Cell]) -> bytes:
    made = struct.pack(">H", len(values))
    for value in values:
        if value is None:
            made += b"n"
        elif value is UNCHANGED:
            made += b"u"
        else:
            assert isinstance(value, bytes)
            made += b"t" + struct.pack(">I", len(value)) + value
    return made


def insert(oid: int, *new: Cell) -> bytes:
    return b"I" + struct.pack(">I", oid) + b"N" + cells(new)


def update(oid: int, new: Sequence[Cell], old: Sequence[Cell] | None = None, kind: bytes = b"K") -> bytes:
    before = b"" if old is None else kind + cells(old)
    return b"U" + struct.pack(">I", oid) + before + b"N" + cells(new)


def delete(oid: int, old: Sequence[Cell], kind: bytes = b"K") -> bytes:
    return b"D" + struct.pack(">I", oid) + kind + cells(old)


def truncate(*oids: int, options: int = 0) -> bytes:
    return b"T" + struct.pack(f">IB{len(oids)}I", len(oids), options, *oids)


def logical_message(prefix: str, content: bytes, *, lsn: int = 0, is_transactional: bool = True) -> bytes:
    head = b"M" + struct.pack(">BQ", is_transactional, lsn) + prefix.encode() + b"\0"
    return head + struct.pack(">I", len(content)) + content


def origin(name: str, lsn: int) -> bytes:
    return b"O" + struct.pack(">Q", lsn) + name.encode() + b"\0"


def settings_of(**more: str) -> PostgresSettings:
    """Settings by their names with underscores for dots."""
    given = {
        "database.hostname": "db",
        "database.user": "reader",
        "database.dbname": "shop",
        "topic.prefix": "shop",
        **{name.replace("_", "."): text for name, text in more.items()},
    }
    return PostgresSettings.of(POSTGRES_OPTIONS.parse(given), given)


def table_of(name: str = "orders", *, key: Sequence[str] = ("id",), **types: str | Column) -> Table:
    """A table of the schema public; columns by their types, an exclamation mark for those that cannot be null."""
    columns: list[Column] = []
    for column, kind in types.items():
        if isinstance(kind, Column):
            columns.append(kind)
        else:
            is_required = kind.endswith("!")
            columns.append(Column(name=column, type=ColumnType(kind.rstrip("!")), optional=not is_required))
    return Table(id=TableId("public", name), columns=tuple(columns), key=tuple(key))


def json_of(value: Any) -> Any:
    """A struct as a dict."""
    if hasattr(value, "items") and hasattr(value, "schema"):
        return {field.name: json_of(each) for field, each in value.items()}
    return [json_of(each) for each in value] if isinstance(value, list) else value
