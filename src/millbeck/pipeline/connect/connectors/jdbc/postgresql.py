"""PostgreSQL by psycopg 3, in the text format throughout: infinite and NaN, years before 1 and after 9999 included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Any, ClassVar, Final

from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.connect.connectors.debezium_types import JSON, UUID, VARIABLE_SCALE_DECIMAL, XML, Temporal
from millbeck.pipeline.connect.connectors.jdbc.dialect import (
    Bind,
    Dialect,
    RowRefused,
    TableColumn,
    TableName,
    declared_type,
)
from millbeck.pipeline.connect.connectors.jdbc.urls import JdbcUrl
from millbeck.pipeline.connect.errors import ConfigError, ConnectError, InvalidValue, RetriableError
from millbeck.pipeline.connect.model.logical import DECIMAL, scale_of
from millbeck.pipeline.connect.model.moments import timestamp_text
from millbeck.pipeline.connect.model.schema import Schema, SchemaType

with needs_extra("postgres"):
    import psycopg
    from psycopg.adapt import Loader

POSITIVE_INFINITY_MS: Final = 9_223_372_036_825_200_000
NEGATIVE_INFINITY_MS: Final = -9_223_372_036_832_400_000
"""What PostgreSQL's JDBC driver has for the timestamps infinity and -infinity."""

_PLAIN: Final = {
    SchemaType.INT8: "SMALLINT",
    SchemaType.INT16: "SMALLINT",
    SchemaType.INT32: "INT",
    SchemaType.INT64: "BIGINT",
    SchemaType.FLOAT32: "REAL",
    SchemaType.FLOAT64: "DOUBLE PRECISION",
    SchemaType.BOOLEAN: "BOOLEAN",
    SchemaType.STRING: "TEXT",
    SchemaType.BYTES: "BYTEA",
}
_TEMPORAL: Final = {
    Temporal.DATE: "DATE",
    Temporal.TIME: "TIME",
    Temporal.TIMESTAMP: "TIMESTAMP",
    Temporal.ZONED_TIMESTAMP: "TIMESTAMPTZ",
    Temporal.ZONED_TIME: "TIMETZ",
}
_NAMED: Final = {
    VARIABLE_SCALE_DECIMAL: "NUMERIC",
    JSON: "JSONB",
    UUID: "UUID",
    XML: "XML",
}
_ROWS_AT_ONCE: Final = 2000
_DIGITS_MAX: Final = 1000
_PASSED_ON: Final = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslpassword": "sslpassword",
    "channelBinding": "channel_binding",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "gssEncMode": "gssencmode",
    "kerberosServerName": "krbsrvname",
    "targetServerType": "target_session_attrs",
}
"""Parameters of the JDBC driver, and libpq's names."""
_SERVER_TYPES: Final = {"primary": "primary", "master": "primary", "any": "any", "secondary": "standby"}
_LASTING_LOGIN: Final = ("password authentication failed", "no pg_hba.conf entry", "does not exist", "no password")

_COLUMNS: Final = """
SELECT a.attname, t.typname, NOT a.attnotnull, coalesce(a.attnum = ANY (i.indkey), false), a.atttypmod
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_TABLES: Final = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_type = ANY (%s) AND table_schema NOT IN ('pg_catalog', 'information_schema')
AND (%s::text IS NULL OR table_schema LIKE %s::text)
ORDER BY table_schema, table_name
"""


class _Text(Loader):
    """Values as the server writes them."""

    def load(self, data: Any) -> str:
        return bytes(data).decode()


class PostgreSql(Dialect):
    """PostgreSQL 12 and later."""

    name = "PostgreSQL"
    epoch_query: ClassVar = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    def __init__(self, url: JdbcUrl, zone: tzinfo) -> None:
        super().__init__(zone)
        self._url = url

    def connect(self, user: str | None, password: str | None, application: str) -> Any:
        options = libpq_options(self._url, user, password)
        options.setdefault("application_name", application)
        try:
            connection = psycopg.connect(**options)
            # The server writes moments in UTC and ISO 8601, and floats with all of their digits.
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET DateStyle = 'ISO, YMD'")
            connection.execute("SET IntervalStyle = 'iso_8601'")
            connection.execute("SET extra_float_digits = 1")
            connection.execute("SET bytea_output = 'hex'")
            connection.commit()
        except psycopg.Error as error:
            raise self.failure(error) from error
        return connection

    def failure(self, error: Exception) -> Exception:
        if isinstance(error, ConnectError) or not isinstance(error, psycopg.Error):
            return error
        sqlstate: str | None = getattr(error, "sqlstate", None)
        state, text = sqlstate or "", str(error).strip()[:1000]
        if state[:2] in ("22", "23") or (not state and isinstance(error, psycopg.DataError)):
            return RowRefused(text)
        if state in ("42P07", "42701", "25006"):  # another task was faster; the server became a standby
            return RetriableError(text)
        if state[:2] == "42" or state in ("3D000", "3F000"):
            hint = ": grant the user of connection.user the right to it" if state == "42501" else ""
            return ConnectError(f"{text}{hint}")
        if state[:2] == "28" or (not state and any(words in text for words in _LASTING_LOGIN)):
            return ConnectError(f"{text}: check connection.url, connection.user and connection.password")
        return RetriableError(text)

    def upsert(self, table: TableName, keys: Sequence[str], others: Sequence[str]) -> str:
        sets = ", ".join(f"{self.parameter(name)} = EXCLUDED.{self.parameter(name)}" for name in others)
        conflict = ", ".join(map(self.parameter, keys))
        action = f"UPDATE SET {sets}" if sets else "NOTHING"
        return f"{self.insert(table, [*keys, *others])} ON CONFLICT ({conflict}) DO {action}"

    def insert_if_missing(self, table: TableName, keys: Sequence[str], others: Sequence[str]) -> str:
        return f"{self.insert(table, [*keys, *others])} ON CONFLICT DO NOTHING"

    def columns(self, connection: Any, table: TableName) -> dict[str, TableColumn] | None:
        rows = connection.execute(_COLUMNS, [self.table(table)]).fetchall()
        found = {
            name: TableColumn(
                name=name,
                type_name=kind,
                is_nullable=is_nullable,
                is_key=is_key,
                precision=_digits(kind, modifier)[0],
                scale=_digits(kind, modifier)[1],
            )
            for name, kind, is_nullable, is_key, modifier in rows
        }
        return found or None

    def query_columns(self, connection: Any, query: str) -> list[TableColumn]:
        cursor = connection.execute(f"SELECT * FROM ({query}) AS q LIMIT 0")
        names = {info.oid: info.name for info in connection.adapters.types}
        return [
            TableColumn(
                name=column.name,
                type_name=names.get(column.type_code, "text"),
                precision=column.precision,
                scale=column.scale,
            )
            for column in cursor.description or ()
        ]

    def tables(self, connection: Any, schema: str | None, types: Sequence[str]) -> list[TableName]:
        kinds = ["BASE TABLE" if each.upper() == "TABLE" else each.upper() for each in types]
        return [TableName(*row) for row in connection.execute(_TABLES, [kinds, schema, schema]).fetchall()]

    def rows(
        self, connection: Any, query: str, parameters: Sequence[Any], columns: Sequence[TableColumn]
    ) -> Iterator[Sequence[Any]]:
        binary = [place for place, column in enumerate(columns) if column.type_name == "bytea"]
        with connection.cursor("millbeck") as cursor:
            for info in connection.adapters.types:
                for oid in (info.oid, info.array_oid):
                    if oid:
                        cursor.adapters.register_loader(oid, _Text)
            cursor.itersize = _ROWS_AT_ONCE
            cursor.execute(query, parameters)
            for row in cursor:
                if binary:
                    row = list(row)
                    for place in binary:
                        row[place] = None if row[place] is None else bytes.fromhex(row[place][2:])
                yield row

    def column_type(self, schema: Schema, *, is_key: bool) -> str:
        if schema.name == DECIMAL:
            scale = scale_of(schema)
            return f"DECIMAL({_DIGITS_MAX},{scale})" if 0 <= scale <= _DIGITS_MAX else "DECIMAL"
        if schema.name in _NAMED:
            return _NAMED[schema.name]
        if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
            return f"{self.column_type(schema.value_schema, is_key=False)}[]"
        return declared_type(schema, _PLAIN, _TEMPORAL, self.name)

    def _bind_other(self, schema: Schema) -> Bind:
        element = schema.value_schema
        if schema.type is not SchemaType.ARRAY or element is None:
            return super()._bind_other(schema)
        bind = self.bind(element)
        return lambda value: "{" + ",".join("NULL" if each is None else _element(bind(each)) for each in value) + "}"

    def timestamp(self, microseconds: int) -> str:
        if microseconds == POSITIVE_INFINITY_MS * 1000:
            return "infinity"
        if microseconds == NEGATIVE_INFINITY_MS * 1000:
            return "-infinity"
        # A column without a time zone ignores the offset, one with it needs it.
        return timestamp_text(microseconds, self.zone, with_offset=True)


def _element(value: Any) -> str:
    """An element of an array's text."""
    match value:
        case bool():
            return "t" if value else "f"
        case bytes():
            return f'"\\\\x{value.hex()}"'
        case str() if value.startswith("{") and value.endswith("}"):
            raise InvalidValue("arrays of arrays have no type of PostgreSQL here")
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


def _digits(kind: str, modifier: int) -> tuple[int | None, int | None]:
    """Precision and scale of a numeric's type modifier."""
    if kind != "numeric" or modifier < 4:
        return None, None
    packed = modifier - 4
    scale = packed & 0x7FF
    return packed >> 16 & 0xFFFF, scale - 0x800 if scale & 0x400 else scale


def libpq_options(url: JdbcUrl, user: str | None, password: str | None) -> dict[str, Any]:
    """A JDBC URL in libpq's words. Parameters that only tune the JDBC driver are left out; those that would change who
    is trusted, and are not known, raise `ConfigError`."""
    given = dict(url.parameters)
    options: dict[str, Any] = {
        "host": ",".join(host for host, _ in url.hosts),
        "port": ",".join(str(port) for _, port in url.hosts),
        "dbname": url.database,
        "connect_timeout": 10,
        "keepalives_idle": 60,
        "client_encoding": "UTF8",
    }
    logins = {"user": user or given.get("user"), "password": password or given.get("password")}
    options |= {name: text for name, text in logins.items() if text is not None}
    given.pop("user", None)
    given.pop("password", None)
    if given.pop("ssl", "false").lower() in ("true", ""):
        options["sslmode"] = "verify-full"
    schema = given.pop("currentSchema", None)
    if schema:
        options["options"] = "-c search_path=" + schema.replace("\\", "\\\\").replace(" ", "\\ ")
    for name, text in given.items():
        if name == "targetServerType":
            text = _SERVER_TYPES.get(text, "any")
        if name in _PASSED_ON:
            options[_PASSED_ON[name]] = text
        elif name.lower().startswith(("ssl", "gss", "socketfactory", "authentication")):
            raise ConfigError(
                f"connection.url: the parameter {name[:60]} is of Java alone: use sslmode and sslrootcert"
            )
    if options.get("sslmode") == "verify-full":
        options.setdefault("sslrootcert", "system")
    return options
