"""Reading tables as they are, under one exported snapshot.

The worker holds a transaction that keeps the snapshot, and finds the ends of chunks in it; tasks read the chunks, each
with a connection of its own that takes up the same snapshot. When the worker dies, the snapshot is gone: what is left
is read in a new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg

from millbeck.pipeline.connect.errors import ConfigError, RetriableError
from millbeck.pipeline.connect.postgres.catalog import Catalog, Connection
from millbeck.pipeline.connect.postgres.chunks import Bound, Order
from millbeck.pipeline.connect.postgres.connection import (
    connected,
    one_line,
    quoted_name,
    quoted_text,
    replicating,
    translated,
)
from millbeck.pipeline.connect.postgres.copy_text import cells_of_line
from millbeck.pipeline.connect.postgres.lsn import lsn_of
from millbeck.pipeline.connect.postgres.slots import create_slot, slot_of
from millbeck.pipeline.connect.postgres.tables import Table, TableId

LOCK_TIMEOUT_S: Final = 10
_TEMPORARY: Final = "millbeck_snapshot"
_PAGE_BYTES_GUESSED: Final = 100


TablesOf = Callable[[Connection], Sequence[TableId]]


class SnapshotSession:
    """One snapshot, from `open` to `close`. ``lsn``: it has exactly the transactions that committed before."""

    def __init__(self, values: Mapping[str, Any], connector: str) -> None:
        self._values = values
        self._connector = connector
        self._holder: Connection | None = None
        self.name = ""
        self.lsn = 0
        self.time_us = 0
        self.xids = ""
        self.found_oid: int | None = None
        self._tables: dict[int, Table | None] = {}

    def open(self, tables_of: TablesOf) -> None:
        """Take the snapshot. The slot is made if it is not there; otherwise another one, which goes away at once, says
        at which position the snapshot is. Waits for transactions that are open in the database.

        The tables are locked first, so that they stay as they are, their rows apart: a table that is written anew looks
        empty to older snapshots.
        """
        slot = self._values["slot.name"]
        holder = connected(self._values, self._connector)
        try:
            is_there = slot_of(holder, slot) is not None
            with connected(self._values, self._connector) as locker:
                locker.execute("BEGIN")
                tables = tables_of(locker)
                _lock(locker, tables)
                replication = replicating(self._values, self._connector)
                try:
                    name = f"{_TEMPORARY}_{holder.info.backend_pid}" if is_there else slot
                    failover = self._values["slot.failover"]
                    exported = create_slot(replication, name, temporary=is_there, failover=failover)
                    holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    holder.execute(f"SET TRANSACTION SNAPSHOT {quoted_text(exported.name)}")
                    _lock(holder, tables)
                    row = holder.execute("select pg_catalog.pg_export_snapshot()").fetchone()
                finally:
                    replication.finish()
        except psycopg.Error as error:
            holder.close()
            raise translated(error, self._values) from error
        except BaseException:
            holder.close()
            raise
        assert row is not None
        self._begin(holder, row[0], exported.lsn)

    def open_now(self, name: str, tables_of: Callable[[Connection], Mapping[TableId, int]]) -> None:
        """Take a snapshot of one table without waiting for anybody; ``lsn`` is a position behind everything that it
        sees, ``xids`` what that is.
        """
        holder = connected(self._values, self._connector)
        try:
            found = {str(table): (table, oid) for table, oid in tables_of(holder).items()}.get(name)
            self.found_oid = None if found is None else found[1]
            holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            _lock(holder, [found[0]] if found else [])
            row = holder.execute(
                "select pg_catalog.pg_export_snapshot(), pg_catalog.txid_current_snapshot()::text, "
                "pg_catalog.pg_current_wal_insert_lsn()::text"
            ).fetchone()
        except BaseException:
            holder.close()
            raise
        assert row is not None
        self._begin(holder, row[0], lsn_of(row[2]))
        self.xids = row[1]

    def _begin(self, holder: Connection, name: str, lsn: int) -> None:
        self._holder, self.name, self.lsn, self.time_us = holder, name, lsn, time.time_ns() // 1000
        self._tables = {}

    @property
    def is_open(self) -> bool:
        """Whether the snapshot still exists."""
        if self._holder is None:
            return False
        try:
            self._holder.execute("select 1")
        except psycopg.Error:
            self.close()
            return False
        return True

    def close(self) -> None:
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    @property
    def connection(self) -> Connection:
        assert self._holder is not None
        return self._holder

    def table(self, oid: int) -> Table | None:
        """A table as it was when the snapshot was taken."""
        if oid not in self._tables:
            self._tables[oid] = Catalog(self.connection).table(oid)
        return self._tables[oid]

    def order_of(self, table: Table, oid: int) -> Order:
        if table.key:
            return Order.KEY
        row = self.connection.execute("select relkind from pg_catalog.pg_class where oid = %s", (oid,)).fetchone()
        has_pages = row is not None and row[0] == "r" and self.connection.info.server_version >= 140_000
        return Order.PAGES if has_pages else Order.WHOLE

    def next_bound(self, table: Table, oid: int, order: Order, after: Bound, rows: int) -> Bound:
        """The last key, or page, of a chunk of so many rows; None when fewer are left."""
        if order is Order.WHOLE:
            return None
        if order is Order.PAGES:
            return self._next_page(oid, after, rows)
        names = [quoted_name(name) for name in table.key]
        chosen = ", ".join(names)
        where = condition(table, order, after, None)
        inner = f"select {chosen} from {quoted_name(*table.id)}{where} order by {chosen} limit {rows}"
        texts = ", ".join(f"{name}::text" for name in names)
        row = self.connection.execute(f"select {texts} from ({inner}) s offset {rows - 1}").fetchone()
        return None if row is None else tuple(row)

    def _next_page(self, oid: int, after: Bound, rows: int) -> Bound:
        row = self.connection.execute(
            "select pg_catalog.pg_relation_size(oid) / 8192, reltuples, relpages from pg_catalog.pg_class "
            "where oid = %s",
            (oid,),
        ).fetchone()
        if row is None:
            return None
        pages, tuples, known_pages = row
        per_page = tuples / known_pages if tuples > 0 and known_pages > 0 else _PAGE_BYTES_GUESSED
        last = (0 if after is None else int(after[0])) + max(1, int(rows / max(per_page, 1)))
        return (str(last),) if last < pages else None


def _lock(connection: Connection, tables: Sequence[TableId]) -> None:
    if not tables:
        return
    names = ", ".join(quoted_name(*table) for table in tables)
    connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'")
    try:
        connection.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE")
    except psycopg.errors.LockNotAvailable as error:
        raise RetriableError(f"a table is being altered, so that no snapshot can be taken: {names[:300]}") from error


def condition(table: Table, order: Order, after: Bound, until: Bound, only: str | None = None) -> str:
    """The WHERE of a chunk; ``only`` is a condition of somebody else's."""
    parts: list[str] = [] if only is None else [f"({only})"]
    if order is Order.WHOLE:
        pass
    elif order is Order.PAGES:
        if after is not None:
            parts.append(f"ctid >= '({int(after[0])},0)'::tid")
        if until is not None:
            parts.append(f"ctid < '({int(until[0])},0)'::tid")
    else:
        names = ", ".join(quoted_name(name) for name in table.key)
        for bound, sign in ((after, ">"), (until, "<=")):
            if bound is not None:
                parts.append(f"({names}) {sign} ({', '.join(map(quoted_text, bound))})")
    return f" where {' and '.join(parts)}" if parts else ""


def chunk_rows(
    values: Mapping[str, Any], connector: str, table: Table, snapshot: str, where: str
) -> Iterator[list[bytes | None]]:
    """In a task: the rows of a chunk, values in the order of the table's columns. Raises `RetriableError` when the
    snapshot is gone.
    """
    connection = connected(values, connector)
    try:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(f"SET TRANSACTION SNAPSHOT {quoted_text(snapshot)}")
        columns = ", ".join(quoted_name(column.name) for column in table.columns)
        query = f"COPY (select {columns} from {quoted_name(*table.id)}{where}) TO STDOUT"
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            for line in copy:
                yield cells_of_line(bytes(line))
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigError(
            f"database.user: {one_line(str(error))}: GRANT SELECT ON {quoted_name(*table.id)} TO "
            f"{values['database.user']}"
        ) from error
    except psycopg.Error as error:
        raise RetriableError(f"reading {table.id}: {one_line(str(error))}") from error
    finally:
        connection.close()
