"""What is wrong in the database, found out before anything runs, each with how to mend it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import psycopg

from millbeck.pipeline.connect.connectors.connector_class import SettingProblem
from millbeck.pipeline.connect.errors import ConfigError, ConnectError
from millbeck.pipeline.connect.postgres.catalog import Connection
from millbeck.pipeline.connect.postgres.connection import (
    REPLICATION_RIGHT,
    application_name,
    connected,
    quoted_name,
    replicating,
)
from millbeck.pipeline.connect.postgres.filters import SYSTEM_SCHEMAS, patterns_of
from millbeck.pipeline.connect.postgres.settings import PostgresSettings
from millbeck.pipeline.connect.postgres.slots import (
    captured_tables,
    publication_of,
    published_tables,
    slot_of,
    slot_problem,
)
from millbeck.pipeline.connect.postgres.tables import TableId

_VERSION_MIN: Final = 120_000
_SHOWN_MAX: Final = 10


def problems_of(values: Mapping[str, Any], settings: PostgresSettings, connector: str) -> list[SettingProblem]:
    """All that can be found out with one look; nothing when the database cannot be reached, for that may pass."""
    try:
        connection = connected(values, connector)
    except ConfigError as error:
        setting, _, problem = str(error).partition(": ")
        return [SettingProblem(setting, problem)]
    except ConnectError:
        return []
    try:
        with connection:
            return [
                *_server(connection, values),
                *_rights(connection, values, connector),
                *_slot(connection, values, connector),
                *_tables(connection, values, settings),
                *_publication(connection, values, settings),
            ]
    except psycopg.OperationalError:
        return []


def _server(connection: Connection, values: Mapping[str, Any]) -> Iterator[SettingProblem]:
    version = connection.info.server_version
    if version < _VERSION_MIN:
        yield SettingProblem(
            "database.hostname", f"PostgreSQL {version // 10_000} is too old: 12 is the oldest that works"
        )
    level = connection.execute("show wal_level").fetchone()
    if level is not None and level[0] != "logical":
        yield SettingProblem(
            "database.hostname",
            f"the server's wal_level is {level[0]}: set wal_level=logical in postgresql.conf and restart it",
        )


def _rights(connection: Connection, values: Mapping[str, Any], connector: str) -> Iterator[SettingProblem]:
    row = connection.execute(
        "select rolreplication or rolsuper from pg_catalog.pg_roles where rolname = current_user"
    ).fetchone()
    if row is not None and not row[0] and not _is_member_of_replication(connection):
        yield SettingProblem(
            "database.user",
            f"the role {values['database.user']} may not replicate: ALTER ROLE "
            f"{quoted_name(values['database.user'])} REPLICATION",
        )
        return
    try:
        replicating(values, connector).finish()
    except ConfigError as error:
        yield SettingProblem("database.user", str(error).partition(": ")[2])
    except ConnectError as error:
        if "number of requested standby connections" in str(error) or "max_wal_senders" in str(error):
            yield SettingProblem("database.hostname", f"{error}: raise max_wal_senders of the server")
        elif "pg_hba.conf" in str(error):
            yield SettingProblem("database.user", f"{error}: {REPLICATION_RIGHT}")


def _is_member_of_replication(connection: Connection) -> bool:
    """Whether a cloud's role for replication is granted."""
    row = connection.execute(
        "select bool_or(pg_catalog.pg_has_role(current_user, oid, 'member')) from pg_catalog.pg_roles "
        "where rolname in ('rds_replication', 'rdsadmin', 'cloudsqlsuperuser', 'azure_pg_admin')"
    ).fetchone()
    return bool(row and row[0])


def _slot(connection: Connection, values: Mapping[str, Any], connector: str) -> Iterator[SettingProblem]:
    name = values["slot.name"]
    slot = slot_of(connection, name)
    if slot is None:
        row = connection.execute(
            "select (select count(*) from pg_catalog.pg_replication_slots), "
            "pg_catalog.current_setting('max_replication_slots')::int"
        ).fetchone()
        if row is not None and row[0] >= row[1]:
            yield SettingProblem(
                "slot.name",
                f"the server has no room for the slot {name}: all {row[1]} are in use; drop one, or raise "
                "max_replication_slots",
            )
        return
    problem = slot_problem(slot, name, values["database.dbname"])
    if problem is not None:
        yield SettingProblem("slot.name", problem)
    elif slot.active_pid is not None and slot.application != application_name(connector):
        yield SettingProblem(
            "slot.name",
            f"the slot {name} is in use by process {slot.active_pid} ({slot.application or 'an unnamed application'}): "
            "stop that, or choose another name",
        )


def _tables(connection: Connection, values: Mapping[str, Any], settings: PostgresSettings) -> Iterator[SettingProblem]:
    capture = settings.capture
    rows = connection.execute(
        "select n.nspname, c.relname from pg_catalog.pg_class c "
        "join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p')"
    ).fetchall()
    names = [TableId(*row) for row in rows if row[0] not in SYSTEM_SCHEMAS]
    for pattern in patterns_of(values["table.include.list"]):
        if not any(pattern.fullmatch(str(table)) for table in names):
            yield SettingProblem(
                "table.include.list",
                f"no table of the database {values['database.dbname']} matches {pattern.pattern}: "
                "names are schema.table",
            )
    signals = values["signal.data.collection"]
    if signals and signals not in map(str, names):
        yield SettingProblem(
            "signal.data.collection",
            f"there is no table {signals}: CREATE TABLE {signals} (id varchar(42) PRIMARY KEY, "
            "type varchar(32) NOT NULL, data text)",
        )
    if values["snapshot.mode"] in ("no_data", "never"):
        return
    captured = captured_tables(connection, capture, via_root=values["publish.via.partition.root"])
    if not captured:
        return
    refused = connection.execute(
        "select oid::regclass::text from unnest(%s::oid[]) oid where not pg_catalog.has_table_privilege(oid, 'SELECT')",
        (list(captured.values()),),
    ).fetchall()
    if refused:
        shown = ", ".join(row[0] for row in refused[:_SHOWN_MAX])
        yield SettingProblem(
            "database.user",
            f"the role {values['database.user']} may not read {shown}: GRANT SELECT ON {shown} TO "
            f"{quoted_name(values['database.user'])}",
        )


def _publication(
    connection: Connection, values: Mapping[str, Any], settings: PostgresSettings
) -> Iterator[SettingProblem]:
    name, mode = values["publication.name"], values["publication.autocreate.mode"]
    found = publication_of(connection, name)
    if found is None:
        if mode == "disabled":
            yield SettingProblem(
                "publication.name",
                f"there is no publication {name}: CREATE PUBLICATION {quoted_name(name)} FOR TABLE ..., or set "
                "publication.autocreate.mode",
            )
        elif mode == "all_tables" and not _is_superuser(connection):
            yield SettingProblem(
                "publication.autocreate.mode",
                f"only a superuser can make a publication for all tables, and {values['database.user']} is none: set "
                "filtered, or make it and set disabled",
            )
        return
    if found[0] or mode == "filtered":
        return
    captured = captured_tables(connection, settings.capture, via_root=found[1])
    missing = [str(table) for table in captured if table not in published_tables(connection, name)]
    if missing and values["table.include.list"]:
        shown = ", ".join(missing[:_SHOWN_MAX])
        yield SettingProblem(
            "publication.name",
            f"the publication {name} does not have {shown}: ALTER PUBLICATION {quoted_name(name)} ADD TABLE {shown}",
        )


def _is_superuser(connection: Connection) -> bool:
    row = connection.execute("select rolsuper from pg_catalog.pg_roles where rolname = current_user").fetchone()
    return bool(row and row[0])
