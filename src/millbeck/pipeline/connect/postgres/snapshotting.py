"""A snapshot from turn to turn: which chunks are next, as the offsets in the log say."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from millbeck.pipeline.connect.connectors.interface import ConnectorContext, Plan, SourcePositions, SourceShare
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.postgres.catalog import Connection
from millbeck.pipeline.connect.postgres.chunks import (
    DoneChunk,
    Gap,
    Order,
    chunk_partition,
    done_chunks,
    gaps_of,
    reach_of,
)
from millbeck.pipeline.connect.postgres.filters import matches, patterns_of
from millbeck.pipeline.connect.postgres.offsets import SNAPSHOT, snapshot_begun, snapshot_completed
from millbeck.pipeline.connect.postgres.settings import PostgresSettings
from millbeck.pipeline.connect.postgres.slots import captured_tables
from millbeck.pipeline.connect.postgres.snapshot import SnapshotSession, condition
from millbeck.pipeline.connect.postgres.tables import Table, TableId

_LOG: Final = logging.getLogger(__name__)


class Snapshotting:
    """Plans a snapshot, in as many turns as it takes."""

    def __init__(
        self, settings: PostgresSettings, context: ConnectorContext, ensure_publication: Callable[[], bool]
    ) -> None:
        self._settings = settings
        self._values = settings.values
        self._context = context
        self._ensure_publication = ensure_publication
        self._session = SnapshotSession(settings.values, context.name)
        self._planned: object = None

    def close(self) -> None:
        self._session.close()

    def plan(self, positions: SourcePositions, offset: Mapping[str, Any] | None, *, restart: bool) -> Plan[SourceShare]:
        """The next shares; ``restart`` forgets a snapshot that is over."""
        server = self._settings.naming.prefix
        done = done_chunks(positions.items(), server)
        self._ensure_session((offset, done))
        tables = self._tables()
        under_way = None if offset is None or (restart and SNAPSHOT not in offset) else offset.get(SNAPSHOT)
        if under_way is None:
            begun = snapshot_begun(self._session.lsn, self._session.time_us, [str(table) for table in tables])
            _LOG.info("%s: a snapshot of %s tables begins", self._context.name, len(tables))
            return self._progress([(self._settings.partition, begun), *self._forgotten(done)])
        wanted = list(under_way["tables"])
        by_name = {str(table): (table, oid) for table, oid in tables.items()}
        shares: list[SourceShare] = []
        described: list[Table] = []
        for name in wanted:
            if name not in by_name:
                continue  # it was dropped, or is captured no more
            table = self._session.table(by_name[name][1])
            if table is None:
                continue
            described.append(table)
            room = self._context.tasks_max - len(shares)
            shares.extend(
                chunk_shares(
                    self._session,
                    server,
                    table,
                    by_name[name][1],
                    done.get(name, []),
                    rows=self._values["millbeck.snapshot.chunk.rows"],
                    room=room,
                )
            )
            if len(shares) >= self._context.tasks_max:
                return Plan(shares=tuple(shares), again_s=0)
        if shares:
            return Plan(shares=tuple(shares), again_s=0)
        return self._completed(described, done, under_way["lsn"])

    def _ensure_session(self, planned: object) -> None:
        """A snapshot that exists; a new one when nothing has moved since the last plan, for it may be to blame."""
        has_moved = planned != self._planned
        self._planned = planned
        if has_moved and self._session.is_open:
            return
        self._session.close()
        via_root = self._ensure_publication()
        self._session.open(lambda connection: list(self._chosen(connection, via_root=via_root)))

    def _tables(self) -> dict[TableId, int]:
        return self._chosen(self._session.connection, via_root=self._ensure_publication())

    def _chosen(self, connection: Connection, *, via_root: bool) -> dict[TableId, int]:
        found = captured_tables(connection, self._settings.capture, via_root=via_root)
        chosen = patterns_of(self._values["snapshot.include.collection.list"])
        wanted = {
            table: oid
            for table, oid in found.items()
            if self._settings.capture.has_table(table) and (not chosen or matches(chosen, str(table)))
        }
        if not wanted:
            raise ConfigError("table.include.list: no table matches: check its names, which are schema.table")
        return wanted

    def _completed(self, tables: list[Table], done: Mapping[str, list[DoneChunk]], begun_lsn: int) -> Plan[SourceShare]:
        positions = [chunk.lsn for table in tables for chunk in done.get(str(table.id), ())]
        start = min(positions, default=begun_lsn)
        reach = reach_of(tables, done, start)
        end = snapshot_completed(start, self._session.time_us, reach.as_json())
        _LOG.info("%s: the snapshot is complete", self._context.name)
        self._session.close()
        return self._progress([(self._settings.partition, end), *self._forgotten(done)])

    def _forgotten(
        self, done: Mapping[str, list[DoneChunk]]
    ) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
        server = self._settings.naming.prefix
        return [
            (chunk_partition(server, table, chunk.number), None) for table, chunks in done.items() for chunk in chunks
        ]

    @staticmethod
    def _progress(items: list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]) -> Plan[SourceShare]:
        return Plan(shares=(SourceShare(payload=("progress", items)),), again_s=0)


def chunk_shares(
    session: SnapshotSession,
    server: str,
    table: Table,
    oid: int,
    done: list[DoneChunk],
    *,
    rows: int,
    room: int,
    more: Mapping[str, Any] | None = None,
) -> Iterator[SourceShare]:
    """The next chunks of a table, at most ``room``. ``more`` is for the chunks of an incremental snapshot: ``signal``,
    ``filter``, and the keys of rows to be left out."""
    order = session.order_of(table, oid)
    for gap in gaps_of(done):
        if room <= 0:
            return
        if gap.is_closed:
            yield _chunk_share(session, server, table, order, gap, more)
            room -= 1
            continue
        after, number = gap.after, gap.number
        while room > 0:
            until = session.next_bound(table, oid, order, after, rows)
            yield _chunk_share(session, server, table, order, Gap(number, after, until, is_closed=False), more)
            room -= 1
            if until is None:
                return
            after, number = until, number + 1


def _chunk_share(
    session: SnapshotSession, server: str, table: Table, order: Order, gap: Gap, more: Mapping[str, Any] | None
) -> SourceShare:
    extra = dict(more or {})
    chunk = DoneChunk(number=gap.number, after=gap.after, until=gap.until, lsn=session.lsn)
    name = str(table.id)
    payload = {
        "table": table.as_json(),
        "where": condition(table, order, gap.after, gap.until, extra.get("filter")),
        "snapshot": session.name,
        "lsn": session.lsn,
        "time_us": session.time_us,
        "now_ms": time.time_ns() // 1_000_000,
        "partition": chunk_partition(server, name, gap.number, signal=extra.get("signal")),
        "offset": chunk.as_json(),
        "is_incremental": more is not None,
        "skipped": extra.get("skipped", frozenset()),
    }
    return SourceShare(payload=("chunk", payload), is_long=True)
