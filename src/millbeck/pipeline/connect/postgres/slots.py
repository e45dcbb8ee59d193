"""The replication slot and the publication: made, looked at, taken over."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import psycopg
from psycopg.pq.abc import PGconn

from millbeck.pipeline.connect.errors import ConfigError, RetriableError
from millbeck.pipeline.connect.postgres.connection import (
    CommandError,
    application_name,
    command,
    quoted_name,
)
from millbeck.pipeline.connect.postgres.filters import CaptureFilter
from millbeck.pipeline.connect.postgres.lsn import lsn_of
from millbeck.pipeline.connect.postgres.tables import TableId

Connection: TypeAlias = "psycopg.Connection[Any]"
_LOG: Final = logging.getLogger(__name__)

_SLOT = """
    select s.plugin, s.slot_type, s.database, s.active_pid, s.confirmed_flush_lsn::text, s.restart_lsn::text,
           s.wal_status, pg_catalog.pg_wal_lsn_diff(case when pg_catalog.pg_is_in_recovery()
               then pg_catalog.pg_last_wal_receive_lsn() else pg_catalog.pg_current_wal_lsn() end,
               s.restart_lsn)::int8, a.application_name, a.client_addr::text
    from pg_catalog.pg_replication_slots s left join pg_catalog.pg_stat_activity a on a.pid = s.active_pid
    where s.slot_name = %s
"""
_SHOWN_MAX: Final = 10
_IN_USE: Final = "55006"
_ALREADY_THERE: Final = "42710"
_NO_ROOM: Final = "53400"
_CANCELLED: Final = "57014"
SLOT_TIMEOUT_S = 60.0
"""A new slot waits for the transactions that are open; so long, and then again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A slot as the server shows it. ``retained_bytes`` is the log that it keeps from being removed."""

    plugin: str | None
    kind: str
    database: str | None
    active_pid: int | None
    confirmed_lsn: int | None
    wal_status: str | None
    retained_bytes: int | None
    application: str | None
    client: str | None

    @property
    def is_lost(self) -> bool:
        """Whether the server has removed what the slot was to keep."""
        return self.wal_status == "lost" or self.confirmed_lsn is None


class ExportedSnapshot(NamedTuple):
    """A snapshot of exactly the transactions that committed before ``lsn``."""

    name: str
    lsn: int


def slot_of(connection: Connection, name: str) -> Slot | None:
    row = connection.execute(_SLOT, (name,)).fetchone()
    if row is None:
        return None
    plugin, kind, database, pid, confirmed, restart, status, retained, application, client = row
    return Slot(
        plugin=plugin,
        kind=kind,
        database=database,
        active_pid=pid,
        confirmed_lsn=None if confirmed is None or restart is None else lsn_of(confirmed),
        wal_status=status,
        retained_bytes=retained,
        application=application,
        client=client,
    )


def slot_problem(slot: Slot, name: str, database: str) -> str | None:
    """Why a slot of this name cannot be used, whatever is done about it."""
    if slot.kind != "logical" or slot.plugin != "pgoutput":
        return f"the slot {name} is for {slot.plugin or slot.kind}, not for pgoutput: choose another name, or drop it"
    if slot.database != database:
        return f"the slot {name} is for the database {slot.database}: choose another name"
    return None


def create_slot(replication: PGconn, name: str, *, temporary: bool, failover: bool) -> ExportedSnapshot:
    """Make a slot with an exported snapshot, which lives until the next command of this connection. The server waits
    for the transactions that are open.
    """
    text = f"CREATE_REPLICATION_SLOT {quoted_name(name)} {'TEMPORARY ' if temporary else ''}LOGICAL pgoutput"
    is_new_grammar = replication.server_version >= 150_000
    if is_new_grammar:
        wants_failover = failover and not temporary and replication.server_version >= 170_000
        text += f" (SNAPSHOT 'export'{', FAILOVER true' if wants_failover else ''})"
    else:
        text += " EXPORT_SNAPSHOT"
    try:
        result = command(replication, text, timeout_s=SLOT_TIMEOUT_S)
    except CommandError as error:
        if error.state == _CANCELLED:
            raise RetriableError(
                "slot.name: transactions that are open in the database hold up the slot: SELECT pid, xact_start, query "
                "FROM pg_stat_activity WHERE backend_xid IS NOT NULL ORDER BY xact_start"
            ) from error
        if error.state == _NO_ROOM:
            raise ConfigError(f"slot.name: {error}: raise max_replication_slots of the server") from error
        if error.state == "42501":
            raise ConfigError(f"database.user: {error}: ALTER ROLE ... REPLICATION") from error
        raise
    position, snapshot = result.get_value(0, 1), result.get_value(0, 2)
    assert position is not None
    assert snapshot is not None
    return ExportedSnapshot(snapshot.decode(), lsn_of(position.decode()))


def drop_slot(connection: Connection, name: str) -> None:
    connection.execute("select pg_catalog.pg_drop_replication_slot(%s)", (name,))


def start_replication(replication: PGconn, *, slot: str, publication: str, lsn: int) -> None:
    """Begin the stream. Raises `SlotInUse`."""
    options = ["proto_version '1'", f"publication_names {_literal(quoted_name(publication))}"]
    if replication.server_version >= 140_000:
        options.append("messages 'true'")
    position = f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
    try:
        command(replication, f"START_REPLICATION SLOT {quoted_name(slot)} LOGICAL {position} ({', '.join(options)})")
    except CommandError as error:
        if error.state == _IN_USE:
            raise SlotInUse(f"slot.name: {error}") from error
        raise


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class SlotInUse(RetriableError):
    """Another connection reads from the slot."""


def take_over(connection: Connection, slot: str, connector: str) -> None:
    """End the connection that reads from the slot if it is one of this connector, left by a worker that is gone; raise
    `SlotInUse` with who it is otherwise.
    """
    found = slot_of(connection, slot)
    if found is None or found.active_pid is None:
        return
    if found.application == application_name(connector):
        _LOG.warning("slot %s: ending process %s of a worker that is gone", slot, found.active_pid)
        connection.execute("select pg_catalog.pg_terminate_backend(%s)", (found.active_pid,))
        return
    who = f"{found.application or 'an unnamed application'} at {found.client or 'the same host'}"
    raise SlotInUse(
        f"slot.name: the slot {slot} is in use by process {found.active_pid} ({who}): stop that, or choose another "
        "name; waiting for it"
    )


# publications


def captured_tables(connection: Connection, capture: CaptureFilter, *, via_root: bool) -> dict[TableId, int]:
    """The tables of the database that the filters choose, with their oids; of partitioned tables the root or the
    partitions, as changes are published.
    """
    rows = connection.execute(
        "select n.nspname, c.relname, c.oid from pg_catalog.pg_class c "
        "join pg_catalog.pg_namespace n on n.oid = c.relnamespace "
        "where c.relpersistence = 'p' and (case when %s then c.relkind in ('r', 'p') and not c.relispartition "
        "else c.relkind = 'r' end) order by 1, 2",
        (via_root,),
    ).fetchall()
    return {TableId(schema, name): oid for schema, name, oid in rows if capture.needs_table(TableId(schema, name))}


def published_tables(connection: Connection, publication: str) -> set[TableId]:
    rows = connection.execute(
        "select schemaname, tablename from pg_catalog.pg_publication_tables where pubname = %s", (publication,)
    ).fetchall()
    return {TableId(*row) for row in rows}


def publication_of(connection: Connection, name: str) -> tuple[bool, bool] | None:
    """Whether a publication is for all tables, and whether it publishes by partition root; None when there is none."""
    by_root = "pubviaroot" if connection.info.server_version >= 130_000 else "false"
    found = connection.execute(
        f"select puballtables, {by_root} from pg_catalog.pg_publication where pubname = %s", (name,)
    ).fetchone()
    return None if found is None else (found[0], found[1])


def without_identity(connection: Connection, publication: str) -> list[TableId]:
    """Published tables of which PostgreSQL refuses every update and delete, since it could not say which row."""
    rows = connection.execute(
        "select n.nspname, c.relname from pg_catalog.pg_publication_tables p "
        "join pg_catalog.pg_namespace n on n.nspname = p.schemaname "
        "join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = p.tablename "
        "where p.pubname = %s and (c.relreplident = 'n' or (c.relreplident = 'd' and not exists "
        "(select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisprimary))) order by 1, 2",
        (publication,),
    ).fetchall()
    return [TableId(*row) for row in rows]


def ensure_publication(connection: Connection, values: Mapping[str, Any], capture: CaptureFilter) -> bool:
    """Make the publication, or bring it up to date, as the mode says; whether changes are published by partition root.
    Raises `ConfigError`.
    """
    name, mode, via_root = (
        values["publication.name"],
        values["publication.autocreate.mode"],
        values["publish.via.partition.root"],
    )
    found = publication_of(connection, name)
    if mode == "disabled" and found is None:
        raise ConfigError(
            f"publication.name: there is no publication {name}: CREATE PUBLICATION {quoted_name(name)} ..., or set "
            "publication.autocreate.mode"
        )
    if found is not None:
        all_tables, by_root = found
        if mode == "filtered" and not all_tables:
            _set_tables(connection, name, list(captured_tables(connection, capture, via_root=by_root)))
        return by_root
    suffix = " WITH (publish_via_partition_root = true)" if via_root else ""
    if mode == "all_tables":
        what = "FOR ALL TABLES"
    else:
        tables = captured_tables(connection, capture, via_root=via_root)
        if not tables:
            raise ConfigError("table.include.list: no table matches: check its names, which are schema.table")
        what = f"FOR TABLE {_names(list(tables))}"
    try:
        connection.execute(f"CREATE PUBLICATION {quoted_name(name)} {what}{suffix}")
    except psycopg.errors.DuplicateObject:
        pass
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigError(
            f"publication.autocreate.mode: {mode} is not allowed to {values['database.user']} "
            f"({error.diag.message_primary}): let a superuser run CREATE PUBLICATION {quoted_name(name)} {what[:200]}, "
            "and set this to disabled"
        ) from error
    refusing = without_identity(connection, name)
    if refusing:
        _LOG.warning(
            "publication.name: PostgreSQL now refuses UPDATE and DELETE on %s, which have no primary key and are in "
            "the publication %s: ALTER TABLE ... REPLICA IDENTITY FULL, or set publication.autocreate.mode=filtered",
            ", ".join(map(str, refusing[:_SHOWN_MAX])),
            name,
        )
    return bool(via_root)


def _set_tables(connection: Connection, name: str, wanted: Sequence[TableId]) -> None:
    if not wanted or set(wanted) == published_tables(connection, name):
        return
    try:
        connection.execute(f"ALTER PUBLICATION {quoted_name(name)} SET TABLE {_names(wanted)}")
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigError(
            f"publication.autocreate.mode: the publication {name} has other tables than those captured, and changing "
            f"it is refused ({error.diag.message_primary}): let its owner set its tables, and set this to disabled"
        ) from error


def _names(tables: Sequence[TableId]) -> str:
    return ", ".join(quoted_name(*table) for table in tables)
