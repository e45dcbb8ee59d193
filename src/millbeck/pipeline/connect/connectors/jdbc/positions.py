"""The sink's positions in a table of the target: they are stored in the transaction that writes the rows.

Of two attempts at one share, one waits for the other's locks and then finds that the positions have moved: it writes
nothing. See ADR 25.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.jdbc.dialect import Dialect, NewColumn, TableName
from millbeck.pipeline.connect.errors import RetriableError
from millbeck.pipeline.connect.model.schema import INT32_SCHEMA, INT64_SCHEMA, STRING_SCHEMA

_COLUMNS: Final = (
    NewColumn("connector", STRING_SCHEMA, is_key=True),
    NewColumn("topic", STRING_SCHEMA, is_key=True),
    NewColumn("partition", INT32_SCHEMA, is_key=True),
    NewColumn("position", INT64_SCHEMA),
)
_KEYS: Final = ("connector", "topic", "partition")


class PositionsTable:
    """The positions of one connector."""

    def __init__(self, dialect: Dialect, table: TableName, connector: str) -> None:
        self._dialect = dialect
        self._connector = connector
        self._table = table
        quote = dialect.parameter
        where = " AND ".join(f"{quote(name)} = %s" for name in _KEYS)
        target = dialect.table(table).replace("%", "%%")
        self._insert = dialect.insert_if_missing(table, _KEYS, ("position",))
        self._lock = f"SELECT {quote('position')} FROM {target} WHERE {where} FOR UPDATE"
        self._all = (
            f"SELECT {quote('topic')}, {quote('partition')}, {quote('position')} FROM {target} "
            f"WHERE {quote('connector')} = %s"
        )
        self._set = dialect.upsert(table, _KEYS, ("position",))
        self._delete = dialect.delete(table, _KEYS)

    def create(self, connection: Any) -> None:
        """Create the table if it is missing, in a transaction of its own."""
        if self._dialect.columns(connection, self._table) is None:
            statement = self._dialect.create(self._table, _COLUMNS)
            execute(connection, statement.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1))
        connection.commit()

    def read(self, connection: Any) -> dict[TopicPartition, int]:
        """All positions; none when the table is missing."""
        if self._dialect.columns(connection, self._table) is None:
            connection.rollback()
            return {}
        found = {
            TopicPartition(topic, int(partition)): int(position)
            for topic, partition, position in rows_of(connection, self._all, [self._connector])
        }
        connection.rollback()
        return found

    def lock(self, connection: Any, starts: Mapping[TopicPartition, int]) -> None:
        """Hold these partitions until the transaction ends. Raises `RetriableError` if they are written from elsewhere
        than from these positions."""
        for partition in sorted(starts):
            place = [self._connector, partition.topic, partition.partition]
            execute(connection, self._insert, [*place, starts[partition]])
            found = [int(row[0]) for row in rows_of(connection, self._lock, place)]
            if found != [starts[partition]]:
                raise RetriableError(
                    f"{partition.topic}-{partition.partition} is written up to {found[0] if found else 'nowhere'} in "
                    f"the database, not {starts[partition]}: another attempt was faster"
                )

    def store(self, connection: Any, positions: Mapping[TopicPartition, int]) -> None:
        for partition, position in sorted(positions.items()):
            execute(connection, self._set, [self._connector, partition.topic, partition.partition, position])

    def forget(self, connection: Any, partitions: Iterable[TopicPartition]) -> None:
        for partition in sorted(partitions):
            execute(connection, self._delete, [self._connector, partition.topic, partition.partition])


def execute(connection: Any, statement: str, parameters: list[Any] | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def rows_of(connection: Any, query: str, parameters: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return list(cursor.fetchall())
