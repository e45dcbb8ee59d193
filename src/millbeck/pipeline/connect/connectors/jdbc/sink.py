"""The JDBC sink: records become rows of tables, by insert, upsert or update, and deletions of rows.

Each batch is tried as a whole. What the database refuses in it is found by trying its rows one by one, and those that
it refuses are rejected; anything else fails the share, and its transaction is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.connector_class import Delivery, SettingProblem
from millbeck.pipeline.connect.connectors.interface import (
    ConnectorContext,
    SinkConnector,
    SinkRecords,
    SinkShare,
)
from millbeck.pipeline.connect.connectors.jdbc.dialect import Dialect, RowRefused, TableName
from millbeck.pipeline.connect.connectors.jdbc.opening import connected, dialect_of, meaning
from millbeck.pipeline.connect.connectors.jdbc.positions import PositionsTable, execute
from millbeck.pipeline.connect.connectors.jdbc.rows import RowShape, RowShapes
from millbeck.pipeline.connect.connectors.jdbc.settings import JDBC_SINK
from millbeck.pipeline.connect.connectors.jdbc.tables import Tables, table_of, table_problem
from millbeck.pipeline.connect.errors import ConfigError, ConnectError, InvalidValue, RetriableError
from millbeck.pipeline.connect.model.record import SinkRecord

_SAVEPOINT = "millbeck_batch"


class JdbcSink(SinkConnector):
    """Writes to a database with SQL."""

    declared = JDBC_SINK

    def __init__(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        super().__init__(values, context)
        self._open_connection: Any = None
        self._dialect: Dialect | None = None

    @property
    def delivery(self) -> Delivery:
        if self.values["millbeck.exactly.once"]:
            return Delivery.IN_TARGET
        return Delivery.AT_LEAST_ONCE if self.values["insert.mode"].lower() == "insert" else Delivery.UPSERT

    # on the worker

    def check(self) -> Iterable[SettingProblem]:
        try:
            dialect = self.dialect()
            connection = connected(dialect, self.values, self.context.name)
        except RetriableError:
            return
        except ConnectError as error:
            setting = "db.timezone" if "db.timezone" in str(error) else "connection.url"
            yield SettingProblem(setting, str(error).removeprefix(f"{setting}: "))
            return
        try:
            for topic in (each.strip() for each in self.context.settings.get("topics", "").split(",")):
                name_format, creates = self.values["table.name.format"], self.values["auto.create"]
                problem = table_problem(dialect, connection, name_format, topic, creates=creates) if topic else None
                if problem is not None:
                    yield SettingProblem("table.name.format", problem)
        except Exception as error:
            failure = meaning(dialect, error)
            if isinstance(failure, ConnectError) and not isinstance(failure, RetriableError):
                yield SettingProblem("connection.url", str(failure))
        finally:
            connection.close()

    def start(self) -> None:
        if self.values["millbeck.exactly.once"]:
            self._with_positions(lambda table, connection: table.create(connection))

    def stop(self) -> None:
        self.close()

    def positions(self, committed: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if not self.values["millbeck.exactly.once"]:
            return committed
        found = self._with_positions(lambda table, connection: table.read(connection))
        return {partition: found.get(partition, position) for partition, position in committed.items()}

    def alter_positions(self, positions: Mapping[TopicPartition, int | None]) -> None:
        if not self.values["millbeck.exactly.once"]:
            return

        def alter(table: PositionsTable, connection: Any) -> None:
            table.create(connection)
            table.store(connection, {key: value for key, value in positions.items() if value is not None})
            table.forget(connection, [key for key, value in positions.items() if value is None])
            connection.commit()

        self._with_positions(alter)

    def _with_positions(self, act: Any) -> Any:
        dialect = self.dialect()
        connection = None
        try:
            connection = connected(dialect, self.values, self.context.name)
            return act(self.positions_table(), connection)
        except Exception as error:
            raise meaning(dialect, error) from error
        finally:
            if connection is not None:
                connection.close()

    # in a task

    def dialect(self) -> Dialect:
        if self._dialect is None:
            self._dialect = dialect_of(self.values)
        return self._dialect

    def positions_table(self) -> PositionsTable:
        table = TableName.of(self.values["millbeck.positions.table"], "millbeck.positions.table")
        return PositionsTable(self.dialect(), table, self.context.name)

    def write(self, share: SinkShare, records: SinkRecords) -> int:
        dialect = self.dialect()
        try:
            if self._open_connection is None:
                self._open_connection = connected(dialect, self.values, self.context.name)
            writer = _ShareWriter(self, self._open_connection, share, records)
            return writer.run()
        except Exception as error:
            self.close()  # which undoes the transaction
            raise meaning(dialect, error) from error

    def close(self) -> None:
        connection, self._open_connection = self._open_connection, None
        if connection is not None:
            try:
                connection.close()
            except Exception:
                return  # it was lost already


class _Batch:
    """Rows of one table and shape, to be written by one statement."""

    def __init__(self, statement: str) -> None:
        self.statement = statement
        self.rows: list[list[Any]] = []
        self.records: list[SinkRecord] = []


class _ShareWriter:
    """Writes one share through one connection."""

    def __init__(self, sink: JdbcSink, connection: Any, share: SinkShare, records: SinkRecords) -> None:
        values = sink.values
        self._dialect = sink.dialect()
        self._connection = connection
        self._records = records
        self._shapes = RowShapes(values, self._dialect)
        self._tables = Tables(self._dialect, creates=values["auto.create"], evolves=values["auto.evolve"])
        self._name_format: str = values["table.name.format"]
        self._mode: str = values["insert.mode"].lower()
        self._deletes: bool = values["delete.enabled"]
        self._batch_size: int = values["batch.size"]
        self._positions = sink.positions_table() if values["millbeck.exactly.once"] else None
        self._written = {each.partition: each.start for each in share.ranges}
        self._ends = {each.partition: each.end for each in share.ranges}
        self._batches: dict[TableName, _Batch] = {}
        self._table_names: dict[str, TableName] = {}
        self._checked: set[tuple[TableName, int]] = set()
        self._kept: list[RowShape] = []
        self._count = 0

    def run(self) -> int:
        self._begin()
        for record in self._records:
            try:
                self._add(record)
            except InvalidValue as error:
                self._records.reject(record, error)
            if record.origin is not None:
                self._written[record.origin] = record.offset + 1
        self._flush()
        self._written = self._ends
        self._commit()
        return self._count

    def _begin(self) -> None:
        if self._positions is not None:
            self._positions.lock(self._connection, self._written)

    def _commit(self) -> None:
        if self._positions is not None:
            self._positions.store(self._connection, self._written)
        self._connection.commit()

    def _add(self, record: SinkRecord) -> None:
        table = self._table(record.topic or "")
        if record.value is None:
            if not self._deletes:
                raise InvalidValue(
                    "the record has no value: set delete.enabled=true to delete its row, or drop it with the Filter "
                    "transform and the predicate RecordIsTombstone"
                )
            shape = self._shapes.deletion(record)
            statement, columns = self._dialect.delete(table, [each.name for each in shape.keys]), shape.keys
        else:
            if record.value_schema is None:
                raise InvalidValue(
                    "the value has no schema: a row needs a struct (JsonConverter with schemas.enable=true, or a "
                    "converter of the schema registry)"
                )
            shape = self._shapes.of(record)
            self._fit(table, shape)
            statement, columns = self._statement(table, shape)
        row = self._shapes.parameters(columns, record)
        batch = self._batches.get(table)
        if batch is None or batch.statement != statement:
            if batch is not None:
                self._write(batch)
            batch = self._batches[table] = _Batch(statement)
        batch.rows.append(row)
        batch.records.append(record)
        if len(batch.rows) >= self._batch_size:
            self._write(self._batches.pop(table))
            if self._positions is None:
                self._flush()
                self._commit()

    def _table(self, topic: str) -> TableName:
        found = self._table_names.get(topic)
        if found is None:
            found = self._table_names[topic] = table_of(self._name_format, topic)
        return found

    def _fit(self, table: TableName, shape: RowShape) -> None:
        """Make sure that the table has the columns. A change of a table is a transaction of its own: some databases
        commit before it in any case."""
        if (table, id(shape)) in self._checked:
            return
        change = self._tables.change(self._connection, table, shape.new_columns)
        if change is not None:
            self._flush()
            self._commit()
            execute(self._connection, change)
            self._connection.commit()
            self._tables.forget()
            self._begin()
        self._kept.append(shape)  # so that its id stays its own
        self._checked.add((table, id(shape)))

    def _statement(self, table: TableName, shape: RowShape) -> tuple[str, Any]:
        keys, others = [each.name for each in shape.keys], [each.name for each in shape.others]
        if self._mode == "insert":
            return self._dialect.insert(table, [*keys, *others]), shape.columns
        if not keys:
            raise ConfigError(f"insert.mode: {self._mode} needs a primary key: set pk.mode")
        if self._mode == "upsert":
            return self._dialect.upsert(table, keys, others), shape.columns
        if not others:
            raise InvalidValue("there is nothing to update: the record has only the columns of its key")
        return self._dialect.update(table, keys, others), (*shape.others, *shape.keys)

    def _flush(self) -> None:
        batches, self._batches = self._batches, {}
        for batch in batches.values():
            self._write(batch)

    def _write(self, batch: _Batch) -> None:
        try:
            self._all_or_nothing(batch.statement, batch.rows)
        except RowRefused as error:
            if len(batch.rows) == 1:
                self._records.reject(batch.records[0], error)
            else:
                for refused, problem in self._one_by_one(batch):
                    self._records.reject(refused, problem)
        self._count += len(batch.rows)

    def _one_by_one(self, batch: _Batch) -> Iterator[tuple[SinkRecord, RowRefused]]:
        for row, record in zip(batch.rows, batch.records, strict=True):
            try:
                self._all_or_nothing(batch.statement, [row])
            except RowRefused as error:
                yield record, error

    def _all_or_nothing(self, statement: str, rows: list[list[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(f"SAVEPOINT {_SAVEPOINT}")
            try:
                cursor.executemany(statement, rows)
            except Exception as error:
                failure = self._dialect.failure(error)
                if isinstance(failure, RowRefused):
                    cursor.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
                    raise failure from error
                raise
            cursor.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
