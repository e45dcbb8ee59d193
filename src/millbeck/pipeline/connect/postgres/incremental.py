"""Tables are read anew while the stream goes on: an incremental snapshot, asked for by a signal.

A few chunks of one table are read at a time. For them a snapshot is taken, then the position behind everything that it
can see. The stream goes on up to this position; then the chunks are read, without the rows that a transaction changed
which is before the position and which the snapshot does not see; then the stream goes on. So a row that was read always
stands where it belongs among the changes of its key, and nothing has to be written to the database.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from millbeck.pipeline.connect.connectors.interface import ConnectorContext, SourcePositions, SourceShare
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.postgres.assembly import Transaction
from millbeck.pipeline.connect.postgres.chunks import chunk_partition, done_chunks
from millbeck.pipeline.connect.postgres.pgoutput import Cells, Delete, Insert, Truncate, Update, message_of
from millbeck.pipeline.connect.postgres.settings import PostgresSettings
from millbeck.pipeline.connect.postgres.share import entries_of
from millbeck.pipeline.connect.postgres.signals import STATE, State
from millbeck.pipeline.connect.postgres.slots import captured_tables
from millbeck.pipeline.connect.postgres.snapshot import SnapshotSession
from millbeck.pipeline.connect.postgres.snapshotting import chunk_shares
from millbeck.pipeline.connect.postgres.stream import ReplicationStream
from millbeck.pipeline.connect.postgres.tables import Table
from millbeck.pipeline.connect.postgres.visibility import SnapshotXids

_CHUNK_ROWS_MIN: Final = 10_000
_SKIPPED_MAX: Final = 100_000
_LOG: Final = logging.getLogger(__name__)

Keys = frozenset[tuple[bytes | None, ...]]


class IncrementalReading:
    """Owns the snapshot of the chunks that come next."""

    def __init__(
        self,
        settings: PostgresSettings,
        context: ConnectorContext,
        stream: ReplicationStream,
        recent: Collection[int],
    ) -> None:
        """``recent`` are the last transactions that went into shares; it grows with them."""
        self._settings = settings
        self._context = context
        self._stream = stream
        self._recent = recent
        self._session = SnapshotSession(settings.values, context.name)
        self._sees: SnapshotXids | None = None
        self._table: tuple[Table, int, str | None] | None = None
        self._skipped: set[tuple[bytes | None, ...]] = set()
        self._is_read = False

    def close(self) -> None:
        self._session.close()
        self._sees = self._table = None
        self._skipped = set()
        self._is_read = False

    @property
    def limit(self) -> int | None:
        """Up to where the stream may go before the chunks are read; None when no chunks are near."""
        return None if self._sees is None else self._session.lsn

    def note(self, transactions: Iterable[Transaction]) -> None:
        """These transactions are written before the chunks."""
        for transaction in transactions:
            xid = transaction.transaction_id
            if xid is not None and self._sees is not None and not self._sees.sees(xid):
                self._note_unseen(transaction)

    def _note_unseen(self, transaction: Transaction) -> None:
        assert self._table is not None
        table = self._table[0]
        shapes = self._stream.assembler.shapes
        same = {shape for shape in transaction.shapes if shapes[shape].id == table.id}
        if not same:
            return
        keys = None if transaction.spool is not None else changed_keys(transaction, same, shapes, table.key)
        if keys is None or len(self._skipped) + len(keys) > _SKIPPED_MAX:
            # Too much to remember: another snapshot will see it.
            self.close()
            return
        self._skipped |= keys

    def shares(self, state: State, positions: SourcePositions) -> tuple[SourceShare, ...] | State | None:
        """The chunks, once the stream is where they belong; None before; another state when a table is done."""
        stream = self._stream
        if self._is_read or (self._sees is not None and not self._session.is_open):
            self.close()
        if self._sees is None:
            remaining = self._opened(state)
            if remaining is not None:
                return remaining
            stream.ask_for_position()
        if self._sees is None or self._table is None or not stream.has_passed(self._session.lsn):
            return None
        table, oid, condition = self._table
        server = self._settings.naming.prefix
        done = done_chunks(positions.items(), server, signal=state["id"]).get(str(table.id), [])
        rows = max(self._settings.values["incremental.snapshot.chunk.size"], _CHUNK_ROWS_MIN)
        more = {"signal": state["id"], "filter": condition, "skipped": frozenset(self._skipped)}
        self._is_read = True
        found = tuple(
            chunk_shares(self._session, server, table, oid, done, rows=rows, room=self._context.tasks_max, more=more)
        )
        return found or self._without(state, str(table.id))

    def _opened(self, state: State) -> State | None:
        """Take a snapshot for the first table; another state if there is nothing to read of it."""
        name, condition = state["tables"][0]
        capture = self._settings.capture
        with_root = self._settings.values["publish.via.partition.root"]
        self._session.open_now(name, lambda connection: captured_tables(connection, capture, via_root=with_root))
        oid = self._session.found_oid
        table = None if oid is None else self._session.table(oid)
        if oid is None or table is None or not table.key:
            _LOG.warning("%s: %s has no key, or is gone: it is not read", self._context.name, name)
            self.close()
            return self._without(state, name)
        sees = SnapshotXids.of(self._session.xids)
        if not all(map(sees.sees, self._recent)):
            # A transaction that is in the log already, and that the database does not show yet.
            self.close()
            return None
        self._sees, self._table = sees, (table, oid, condition)
        return None

    @staticmethod
    def _without(state: State, name: str) -> State:
        return {**state, "tables": [each for each in state["tables"] if each[0] != name]}


def forgotten(
    positions: SourcePositions, server: str, state: State
) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """The offsets of chunks that are not needed any more."""
    wanted = {name for name, _ in state["tables"]}
    done = done_chunks(positions.items(), server, signal=state["id"])
    return [
        (chunk_partition(server, table, chunk.number, signal=state["id"]), None)
        for table, chunks in done.items()
        if table not in wanted
        for chunk in chunks
    ]


def changed_keys(
    transaction: Transaction, shapes: set[int], tables: Mapping[int, Table], key: Sequence[str]
) -> Keys | None:
    """The keys of rows that a transaction has touched, as texts; None when it may be any."""
    found: set[tuple[bytes | None, ...]] = set()
    for _, shape, message in entries_of(transaction.entries):
        if shape not in shapes:
            continue
        places = [place for name in key for place, column in enumerate(tables[shape].columns) if column.name == name]
        if len(places) != len(key):
            return None
        change = message_of(message)
        rows: list[Cells] = []
        match change:
            case Insert():
                rows = [change.new]
            case Update():
                rows = [change.new] if change.old is None else [change.new, change.old]
            case Delete():
                rows = [change.old]
            case Truncate():
                return None
            case _:
                raise InvalidValue(f"a transaction has a {type(change).__name__} of a table")
        for row in rows:
            cells = tuple(row[place] for place in places)
            found.add(tuple(cell if isinstance(cell, bytes) else None for cell in cells))
    return frozenset(found)


def state_of(offset: Mapping[str, Any] | None) -> State | None:
    """What is to be read, if it is not paused."""
    found: State | None = None if offset is None else offset.get(STATE)
    return found if found and found.get("tables") and not found.get("paused") else None
