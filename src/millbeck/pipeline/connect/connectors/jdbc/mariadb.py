"""MariaDB and MySQL by PyMySQL. The session is strict, so that the server refuses what it would otherwise cut off."""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Any, ClassVar, Final

from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.connect.connectors.debezium_types import JSON, UUID, VARIABLE_SCALE_DECIMAL, Temporal
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
from millbeck.pipeline.connect.model.moments import (
    date_of,
    date_text,
    offset_seconds,
    parsed_timestamp,
    timestamp_text,
)
from millbeck.pipeline.connect.model.schema import Schema, SchemaType

with needs_extra("mariadb"):
    import pymysql
    import pymysql.converters
    import pymysql.cursors

_PLAIN: Final = {
    SchemaType.INT8: "TINYINT",
    SchemaType.INT16: "SMALLINT",
    SchemaType.INT32: "INT",
    SchemaType.INT64: "BIGINT",
    SchemaType.FLOAT32: "FLOAT",
    SchemaType.FLOAT64: "DOUBLE",
    SchemaType.BOOLEAN: "BOOLEAN",
    SchemaType.STRING: "LONGTEXT",
    SchemaType.BYTES: "LONGBLOB",
}
_TEMPORAL: Final = {
    Temporal.DATE: "DATE",
    Temporal.TIME: "TIME(6)",
    Temporal.TIMESTAMP: "DATETIME(6)",
    Temporal.ZONED_TIMESTAMP: "DATETIME(6)",
    Temporal.ZONED_TIME: "VARCHAR(40)",
}
_IN_A_KEY: Final = {"LONGTEXT": "VARCHAR(255)", "LONGBLOB": "VARBINARY(512)"}
_DIGITS_MAX, _SCALE_MAX = 65, 38
_LASTING_LOGIN: Final = frozenset({1044, 1045, 1049, 1698, 2059})
_LASTING: Final = frozenset({1142, 1143, 1227, 1370, 1146, 1054, 1064, 1101, 1071, 1072, 1113, 1074})
_OF_A_ROW: Final = frozenset(
    {1048, 1062, 1136, 1264, 1265, 1292, 1364, 1366, 1367, 1406, 1411, 1416, 1451, 1452, 1525, 1690, 3819, 4025, 4078}
)
_NEWEST_YEAR, _OLDEST_YEAR = 9999, 1
_TEXT_TYPES: Final = ("char", "varchar", "text", "tinytext", "mediumtext", "longtext", "enum", "set", "json", "uuid")
BINARY_TYPES: Final = ("binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob", "bit")
_COLUMN_TYPE: Final = re.compile(r"(?P<name>[a-z0-9_]+)(?:\((?P<sizes>[^)]*)\))?(?P<rest>.*)")


class MariaDb(Dialect):
    """MariaDB 10.5 and later, MySQL 8."""

    name = "MariaDB"
    quote_mark = "`"
    epoch_query: ClassVar = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"

    def __init__(self, url: JdbcUrl, zone: tzinfo) -> None:
        super().__init__(zone)
        self._url = url

    def connect(self, user: str | None, password: str | None, application: str) -> Any:
        given = self._url.parameters
        failure: Exception | None = None
        for host, port in self._url.hosts:
            try:
                connection = pymysql.connect(
                    host=host,
                    port=port,
                    user=user or given.get("user"),
                    password=password or given.get("password") or "",
                    database=self._url.database,
                    charset="utf8mb4",
                    autocommit=False,
                    connect_timeout=10,
                    conv=_without_decoders(),
                    program_name=application,
                    ssl=tls_context(self._url),
                )
                with connection.cursor() as cursor:
                    cursor.execute("SET SESSION sql_mode = 'TRADITIONAL,NO_ENGINE_SUBSTITUTION'")
                    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
                    cursor.execute("SET SESSION time_zone = %s", [self._zone_name()])
            except pymysql.err.Error as error:
                failure = self.failure(error)
                continue
            return connection
        assert failure is not None
        raise failure

    def _zone_name(self) -> str:
        name = str(getattr(self.zone, "key", "UTC"))
        return "+00:00" if name == "UTC" else name

    def failure(self, error: Exception) -> Exception:
        if isinstance(error, ConnectError) or not isinstance(error, pymysql.err.Error):
            return error
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = str(error.args[1] if len(error.args) > 1 else error)[:1000]
        if number in _OF_A_ROW or (not number and "can not be used with MySQL" in text):
            return RowRefused(text)
        if number == 1298:
            return ConfigError(f"db.timezone: {text}: load the server's time zone tables, or use UTC")
        if number in _LASTING_LOGIN:
            return ConnectError(f"{text}: check connection.url, connection.user and connection.password")
        return ConnectError(text) if number in _LASTING else RetriableError(f"{text} ({number})")

    def upsert(self, table: TableName, keys: Sequence[str], others: Sequence[str]) -> str:
        sets = ", ".join(f"{name} = VALUES({name})" for name in map(self.parameter, others or keys[:1]))
        return f"{self.insert(table, [*keys, *others])} ON DUPLICATE KEY UPDATE {sets}"

    def insert_if_missing(self, table: TableName, keys: Sequence[str], others: Sequence[str]) -> str:
        same = self.parameter(keys[0])
        return f"{self.insert(table, [*keys, *others])} ON DUPLICATE KEY UPDATE {same} = {same}"

    def _quoted_text(self, text: str) -> str | None:
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'" if len(text) < 1000 else None

    def columns(self, connection: Any, table: TableName) -> dict[str, TableColumn] | None:
        with connection.cursor() as cursor:
            try:
                cursor.execute(f"SHOW COLUMNS FROM {self.table(table)}")
            except pymysql.err.ProgrammingError as error:
                if error.args[0] == 1146:
                    return None
                raise
            return {row[0]: _column(row) for row in cursor.fetchall()}

    def query_columns(self, connection: Any, query: str) -> list[TableColumn]:
        with connection.cursor() as cursor:
            cursor.execute("DROP TEMPORARY TABLE IF EXISTS millbeck_columns")
            cursor.execute(f"CREATE TEMPORARY TABLE millbeck_columns AS SELECT * FROM ({query}) AS q LIMIT 0")
            cursor.execute("SHOW COLUMNS FROM millbeck_columns")
            found = [_column(row) for row in cursor.fetchall()]
            cursor.execute("DROP TEMPORARY TABLE millbeck_columns")
        return found

    def tables(self, connection: Any, schema: str | None, types: Sequence[str]) -> list[TableName]:
        kinds = ["BASE TABLE" if each.upper() == "TABLE" else each.upper() for each in types]
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type IN %s "
                "AND table_schema LIKE %s ORDER BY table_schema, table_name",
                [kinds, schema or self._url.database],
            )
            return [TableName(*row) for row in cursor.fetchall()]

    def rows(
        self, connection: Any, query: str, parameters: Sequence[Any], columns: Sequence[TableColumn]
    ) -> Iterator[Sequence[Any]]:
        with connection.cursor(pymysql.cursors.SSCursor) as cursor:
            cursor.execute(query, parameters)
            yield from cursor.fetchall_unbuffered()

    def selected(self, column: TableColumn) -> str:
        # A FLOAT is shown with six digits; as a DOUBLE it has all of them.
        name = self.parameter(column.name)
        return f"({name} + 0e0) AS {name}" if column.type_name == "float" else name

    def column_type(self, schema: Schema, *, is_key: bool) -> str:
        if schema.name == DECIMAL:
            scale = scale_of(schema)
            if not 0 <= scale <= _SCALE_MAX:
                raise InvalidValue(f"MariaDB has no decimals of scale {scale}, only 0 to {_SCALE_MAX}")
            return f"DECIMAL({_DIGITS_MAX},{scale})"
        if schema.name == VARIABLE_SCALE_DECIMAL:
            return f"DECIMAL({_DIGITS_MAX},{_SCALE_MAX})"
        if schema.name == JSON:
            return "JSON"
        if schema.name == UUID:
            return "CHAR(36)"
        found = declared_type(schema, _PLAIN, _TEMPORAL, self.name)
        return _IN_A_KEY.get(found, found) if is_key else found

    def _bind_float(self) -> Bind:
        return _finite

    def date(self, days: int) -> str:
        _check_year(days)
        return date_text(days)

    def timestamp(self, microseconds: int) -> str:
        offset_s = offset_seconds(microseconds, self.zone)
        _check_year((microseconds + offset_s * 1_000_000) // 86_400_000_000)
        return timestamp_text(microseconds, self.zone)

    def zoned_timestamp(self, text: str) -> str:
        try:
            return self.timestamp(parsed_timestamp(text))
        except ValueError as error:
            raise InvalidValue(str(error)) from None


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise InvalidValue(f"MariaDB has no {value}: NaN and infinite numbers cannot be stored there")
    return float(value)


def _check_year(days: int) -> None:
    year = date_of(days)[0]
    if not _OLDEST_YEAR <= year <= _NEWEST_YEAR:
        raise InvalidValue(f"MariaDB has no year {year}, only {_OLDEST_YEAR} to {_NEWEST_YEAR}")


def _without_decoders() -> dict[Any, Any]:
    """PyMySQL's converters of parameters, none of results: those stay texts, or bytes in binary columns."""
    return {key: made for key, made in pymysql.converters.conversions.items() if not isinstance(key, int)}


def _column(row: Sequence[Any]) -> TableColumn:
    """A row of SHOW COLUMNS: name, type, nullable, key."""
    match = _COLUMN_TYPE.fullmatch(str(row[1]).lower())
    assert match is not None, row[1]
    sizes = [int(each) for each in (match["sizes"] or "").split(",") if each.isdigit()]
    is_decimal = match["name"] == "decimal"
    return TableColumn(
        name=str(row[0]),
        type_name=match["name"],
        is_nullable=row[2] == "YES",
        is_key=row[3] == "PRI",
        precision=sizes[0] if sizes else None,
        scale=(sizes[1] if len(sizes) > 1 else 0) if is_decimal else None,
        is_unsigned="unsigned" in match["rest"],
    )


def tls_context(url: JdbcUrl) -> ssl.SSLContext | None:
    """TLS as the JDBC URL asks for it; None without."""
    given = url.parameters
    mode = given.get("sslMode", "").lower().replace("_", "-")
    asks = given.get("useSSL", given.get("requireSSL", "false")).lower() == "true"
    if mode in ("", "disable", "disabled", "preferred") and not asks:
        return None
    context = ssl.create_default_context(cafile=given.get("serverSslCert"))
    if mode in ("trust", "required") or (asks and not mode and given.get("verifyServerCertificate") == "false"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif mode == "verify-ca":
        context.check_hostname = False
    return context
