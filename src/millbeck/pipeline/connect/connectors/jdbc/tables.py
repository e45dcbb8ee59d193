"""The tables that records go to: their names, and how they are created and extended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millbeck.pipeline.connect.connectors.jdbc.dialect import Dialect, NewColumn, TableColumn, TableName
from millbeck.pipeline.connect.errors import ConfigError, ConnectError

SETTING = "table.name.format"


def table_of(name_format: str, topic: str) -> TableName:
    """The table for a topic."""
    return TableName.of(name_format.replace("${topic}", topic), SETTING)


class Tables:
    """The tables of one connection, looked at once each."""

    def __init__(self, dialect: Dialect, *, creates: bool, evolves: bool) -> None:
        self._dialect = dialect
        self._creates = creates
        self._evolves = evolves
        self._known: dict[TableName, dict[str, TableColumn]] = {}

    def forget(self) -> None:
        self._known.clear()

    def change(self, connection: Any, table: TableName, columns: Sequence[NewColumn]) -> str | None:
        """The statement that must run before rows with these columns can be written; None when there is nothing to
        change. Raises `ConnectError` if it may not be changed."""
        known = self._columns(connection, table)
        if known is None:
            if not self._creates:
                raise ConnectError(
                    f'the table "{table}" is missing: create it, or set auto.create=true (or table.name.format)'
                )
            return self._dialect.create(table, columns)
        missing = [column for column in columns if column.name not in known]
        if not missing:
            return None
        names = ", ".join(column.name for column in missing)
        if not self._evolves:
            raise ConnectError(f'the table "{table}" has no columns {names}: add them, or set auto.evolve=true')
        for column in missing:
            if column.is_key or (not column.schema.optional and column.schema.default is None):
                raise ConnectError(
                    f'the column {column.name} cannot be added to the table "{table}": it is '
                    f"{'of the primary key' if column.is_key else 'required and has no default'}; add it yourself"
                )
        return self._dialect.extend(table, missing)

    def _columns(self, connection: Any, table: TableName) -> dict[str, TableColumn] | None:
        known = self._known.get(table)
        if known is None:
            known = self._dialect.columns(connection, table)
            if known is not None:
                self._known[table] = known
        return known


def table_problem(dialect: Dialect, connection: Any, name_format: str, topic: str, *, creates: bool) -> str | None:
    """What a look at the database tells of a topic's table before anything is written."""
    try:
        table = table_of(name_format, topic)
    except ConfigError as error:
        return str(error)
    if not creates and dialect.columns(connection, table) is None:
        return f'the table "{table}" for the topic {topic} is missing: create it, or set auto.create=true'
    return None
