"""What the JDBC connectors need of a database: statements, types of columns, values of parameters, kinds of errors.

Values travel as texts where the database's own reading of a text is exact (dates, times, arrays), never through a type
of Python that is narrower than the database's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from typing import Any, ClassVar, Final

from millbeck.pipeline.connect.connectors.debezium_types import (
    VARIABLE_SCALE_DECIMAL,
    Temporal,
    TemporalUnit,
    decimal_of_struct,
    moment_of,
    temporal_of,
)
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.logical import DECIMAL
from millbeck.pipeline.connect.model.moments import date_text, time_text
from millbeck.pipeline.connect.model.schema import Schema, SchemaType

Bind = Callable[[Any], Any]
"""Makes a statement's parameter of a value that is not null; raises `InvalidValue`."""

_PART: Final = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^."`]+)')


class RowRefused(InvalidValue):
    """The database refuses what is in a row: too long, out of range, a broken constraint."""


@dataclass(frozen=True, slots=True)
class TableName:
    """A table, with its schema (in MariaDB: its database) if one is named."""

    schema: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"

    @classmethod
    def of(cls, text: str, setting: str) -> TableName:
        """``schema.table``; a part with a dot is in double quotes or backticks. Raises `ConfigError`."""
        parts: list[str] = []
        place = 0
        while True:
            match = _PART.match(text, place)
            if match is None:
                raise ConfigError.of(setting, text[:200], "expected the name of a table, or schema.table")
            quoted, ticked, plain = match.groups()
            parts.append(quoted.replace('""', '"') if quoted else ticked.replace("``", "`") if ticked else plain)
            place = match.end()
            if place == len(text):
                break
            if text[place] != ".":
                raise ConfigError.of(setting, text[:200], "expected a dot between schema and table")
            place += 1
        # A third part is the database, which the connection's URL names.
        return cls(parts[-2] if len(parts) > 1 else None, parts[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column of a table or of a query's result. ``type_name`` is the database's, in lower case."""

    name: str
    type_name: str
    is_nullable: bool = True
    is_key: bool = False
    precision: int | None = None
    scale: int | None = None
    is_unsigned: bool = False


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column that a schema asks for."""

    name: str
    schema: Schema
    is_key: bool = False


class Dialect:
    """One database's way. Derived classes have a driver."""

    name: ClassVar[str]
    quote_mark: ClassVar[str] = '"'
    epoch_query: ClassVar[str]
    """A query of the database's clock: microseconds since 1970."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        """Of columns without a time zone."""

    # connections and errors

    def connect(self, user: str | None, password: str | None, application: str) -> Any:
        """A connection of Python's database interface, without autocommit; raises what `failure` returns."""
        raise NotImplementedError

    def failure(self, error: Exception) -> Exception:
        """What an error of the driver means: `RowRefused`, `RetriableError`, or a `ConnectError` that lasts."""
        raise NotImplementedError

    # statements

    def quoted(self, identifier: str) -> str:
        mark = self.quote_mark
        return f"{mark}{identifier.replace(mark, mark * 2)}{mark}"

    def table(self, table: TableName) -> str:
        return ".".join(self.quoted(part) for part in (table.schema, table.name) if part is not None)

    def parameter(self, identifier: str) -> str:
        """A quoted identifier in a statement with parameters."""
        return self.quoted(identifier).replace("%", "%%")

    def insert(self, table: TableName, columns: Sequence[str]) -> str:
        target = self.table(table).replace("%", "%%")
        names, marks = ", ".join(map(self.parameter, columns)), ", ".join(["%s"] * len(columns))
        return f"INSERT INTO {target} ({names}) VALUES ({marks})"

    def upsert(self, table: TableName, keys: Sequence[str], others: Sequence[str]) -> str:
        raise NotImplementedError

    def insert_if_missing(self, table: TableName, keys: Sequence[str], others: Sequence[str]) -> str:
        """It changes no row that is there, and waits for a transaction that is about to insert the same one."""
        raise NotImplementedError

    def update(self, table: TableName, keys: Sequence[str], others: Sequence[str]) -> str:
        """The parameters are the other columns', then the keys'."""
        sets = ", ".join(f"{self.parameter(name)} = %s" for name in others)
        return f"UPDATE {self.table(table).replace('%', '%%')} SET {sets} WHERE {self._equal(keys)}"

    def delete(self, table: TableName, keys: Sequence[str]) -> str:
        return f"DELETE FROM {self.table(table).replace('%', '%%')} WHERE {self._equal(keys)}"

    def _equal(self, keys: Sequence[str]) -> str:
        return " AND ".join(f"{self.parameter(name)} = %s" for name in keys)

    def create(self, table: TableName, columns: Sequence[NewColumn]) -> str:
        parts = [self._definition(column) for column in columns]
        keys = [self.quoted(column.name) for column in columns if column.is_key]
        if keys:
            parts.append(f"PRIMARY KEY ({', '.join(keys)})")
        return f"CREATE TABLE {self.table(table)} ({', '.join(parts)})"

    def extend(self, table: TableName, columns: Iterable[NewColumn]) -> str:
        added = ", ".join(f"ADD {self._definition(column)}" for column in columns)
        return f"ALTER TABLE {self.table(table)} {added}"

    def _definition(self, column: NewColumn) -> str:
        schema = column.schema
        text = f"{self.quoted(column.name)} {self.column_type(schema, is_key=column.is_key)}"
        if schema.default is not None and not column.is_key:
            literal = self._literal(schema, schema.default)
            if literal is not None:
                text += f" DEFAULT {literal}"
        return f"{text} NOT NULL" if column.is_key or not schema.optional else text

    def _literal(self, schema: Schema, value: object) -> str | None:
        """A default in a definition; None for what is better left to the records."""
        match self.bind(schema)(value):
            case bool() as found:
                return "TRUE" if found else "FALSE"
            case float() as found if not math.isfinite(found):
                return None
            case (int() | float() | Decimal()) as found:
                return str(found)
            case str() as found:
                return self._quoted_text(found)
        return None

    def _quoted_text(self, text: str) -> str | None:
        return "'" + text.replace("'", "''") + "'"

    # the database's tables

    def columns(self, connection: Any, table: TableName) -> dict[str, TableColumn] | None:
        """The columns of a table by name, in their order; None when there is no such table."""
        raise NotImplementedError

    def query_columns(self, connection: Any, query: str) -> list[TableColumn]:
        """The columns of a query's result; which may be null is not known, so all may."""
        raise NotImplementedError

    def tables(self, connection: Any, schema: str | None, types: Sequence[str]) -> list[TableName]:
        """The tables that can be read, by name; ``types`` are TABLE and VIEW."""
        raise NotImplementedError

    def rows(self, connection: Any, query: str, parameters: Sequence[Any], columns: Sequence[TableColumn]) -> Any:
        """An iterator over rows of texts (bytes for binary columns), read in pieces."""
        raise NotImplementedError

    def selected(self, column: TableColumn) -> str:
        """How a column is named in a query, so that nothing of it is rounded."""
        return self.parameter(column.name)

    # types and values

    def column_type(self, schema: Schema, *, is_key: bool) -> str:
        """The type of a column for a schema. Raises `InvalidValue`."""
        raise NotImplementedError

    def bind(self, schema: Schema) -> Bind:
        """Raises `InvalidValue` for a schema whose values no column can have."""
        unit = temporal_of(schema)
        if unit is not None:
            return self._bind_temporal(schema, unit)
        if schema.name == DECIMAL:
            return _same
        if schema.name == VARIABLE_SCALE_DECIMAL:
            return decimal_of_struct
        match schema.type:
            case SchemaType.INT8 | SchemaType.INT16 | SchemaType.INT32 | SchemaType.INT64:
                return int
            case SchemaType.FLOAT32 | SchemaType.FLOAT64:
                return self._bind_float()
            case SchemaType.BOOLEAN | SchemaType.STRING | SchemaType.BYTES:
                return _same
        return self._bind_other(schema)

    def _bind_float(self) -> Bind:
        return float

    def _bind_other(self, schema: Schema) -> Bind:
        raise InvalidValue(
            f"{schema} does not fit into a column of {self.name}: flatten structs with the Flatten transform, "
            "or leave the field out with ReplaceField"
        )

    def _bind_temporal(self, schema: Schema, unit: TemporalUnit) -> Bind:
        match unit.kind:
            case Temporal.DATE:
                return lambda value: self.date(moment_of(schema, unit, value))
            case Temporal.TIME:
                return lambda value: time_text(moment_of(schema, unit, value))
            case Temporal.TIMESTAMP:
                return lambda value: self.timestamp(moment_of(schema, unit, value))
            case Temporal.ZONED_TIMESTAMP:
                return self.zoned_timestamp
        return _same

    def date(self, days: int) -> str:
        return date_text(days)

    def timestamp(self, microseconds: int) -> str:
        raise NotImplementedError

    def zoned_timestamp(self, text: str) -> str:
        return text

    def ensure_text(self, value: object) -> None:
        """Raises `RowRefused` for a text that has no UTF-8."""
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                raise RowRefused("a text has half a character of UTF-16, which UTF-8 cannot hold") from None


def _same(value: Any) -> Any:
    return value


def declared_type(
    schema: Schema, plain: Mapping[SchemaType, str], temporal: Mapping[Temporal, str], database: str
) -> str:
    """The column type of a schema by tables of types."""
    unit = temporal_of(schema)
    if unit is not None:
        return temporal[unit.kind]
    found = plain.get(schema.type)
    if found is None:
        raise InvalidValue(
            f"{schema} has no type of {database}: flatten structs with the Flatten transform, or create the table"
        )
    return found
