"""The JDBC source: new rows of tables, or of a query, become records.

The worker asks the database how far each table goes; the tasks read what is between. An offset says how far a table is
committed, in the form of Confluent's connector, so that one can go on where the other stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millbeck.pipeline.connect.connectors.connector_class import SettingProblem
from millbeck.pipeline.connect.connectors.interface import (
    ConnectorContext,
    Plan,
    RejectedRecord,
    SourceConnector,
    SourceItem,
    SourcePositions,
    SourceProgress,
    SourceShare,
)
from millbeck.pipeline.connect.connectors.jdbc.columns import WHOLE_TYPES, RowReader, moment, reader_of
from millbeck.pipeline.connect.connectors.jdbc.dialect import Dialect, TableColumn, TableName
from millbeck.pipeline.connect.connectors.jdbc.opening import connected, dialect_of, meaning
from millbeck.pipeline.connect.connectors.jdbc.positions import rows_of
from millbeck.pipeline.connect.connectors.jdbc.ranges import Conditions, Place
from millbeck.pipeline.connect.connectors.jdbc.settings import JDBC_SOURCE
from millbeck.pipeline.connect.errors import ConfigError, ConnectError, InvalidValue, RetriableError
from millbeck.pipeline.connect.model.record import SourceRecord

_QUERY_PARTITION = {"query": "query"}


@dataclass(frozen=True, slots=True)
class TableRange:
    """Rows of one table, or of the query (``table`` is None). Without an end: all of them."""

    table: TableName | None
    start: Place
    end: Place | None
    is_mark: bool = False
    """Nothing is read: the end is noted as where reading begins."""

    @property
    def partition(self) -> dict[str, Any]:
        return dict(_QUERY_PARTITION) if self.table is None else {"protocol": "1", "table": str(self.table)}


class JdbcSource(SourceConnector):
    """Reads from a database with SQL."""

    declared = JDBC_SOURCE

    def __init__(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        super().__init__(values, context)
        self._dialect_made: Dialect | None = None
        self._open_connection: Any = None
        self._tables: list[TableName | None] = []
        self._tables_at: int | None = None
        self._mode: str = values["mode"].lower()
        self._query: str = values["query"].strip().rstrip(";")

    def dialect(self) -> Dialect:
        if self._dialect_made is None:
            self._dialect_made = dialect_of(self.values)
        return self._dialect_made

    # on the worker

    def check(self) -> Iterable[SettingProblem]:
        try:
            connection = self._connection()
        except RetriableError:
            return
        except ConnectError as error:
            setting = "db.timezone" if "db.timezone" in str(error) else "connection.url"
            yield SettingProblem(setting, str(error).removeprefix(f"{setting}: "))
            return
        try:
            for table in self._listed(connection):
                self._conditions(self._columns(connection, table), str(table or "query"))
        except Exception as error:
            failure = meaning(self.dialect(), error)
            if isinstance(failure, ConnectError) and not isinstance(failure, RetriableError):
                setting, _, problem = str(failure).partition(": ")
                known = setting in self.declared.config_def
                default = "query" if self._query else "table.whitelist"
                yield SettingProblem(setting if known else default, problem if known else str(failure))
        finally:
            self.close()

    def stop(self) -> None:
        self.close()

    def plan(self, positions: SourcePositions) -> Plan[SourceShare]:
        try:
            found = self._planned(positions)
        except Exception as error:
            self.close()
            raise meaning(self.dialect(), error) from error
        tasks = max(1, min(self.context.tasks_max, len(found)))
        dealt = [tuple(found[place::tasks]) for place in range(tasks)]
        is_bulk = self._mode == "bulk"
        return Plan(
            shares=tuple(SourceShare(payload=ranges, is_long=is_bulk) for ranges in dealt if ranges),
            again_s=0 if found and not is_bulk else self.values["poll.interval.ms"] / 1000,
        )

    def _planned(self, positions: SourcePositions) -> list[TableRange]:
        connection = self._connection()
        dialect = self.dialect()
        now_us = int(rows_of(connection, dialect.epoch_query, [])[0][0])
        interval_us = self.values["table.poll.interval.ms"] * 1000
        if self._tables_at is None or now_us - self._tables_at >= interval_us:
            self._tables, self._tables_at = self._listed(connection), now_us
        found: list[TableRange] = []
        for table in self._tables:
            if self._mode == "bulk":
                found.append(TableRange(table, Place(), None))
                continue
            columns = self._columns(connection, table)
            conditions = self._conditions(columns, str(table or "query"))
            start, is_new = self._start(positions, table, now_us)
            if is_new:
                found.append(TableRange(table, start, start, is_mark=True))
                continue
            limit_us = now_us - self.values["timestamp.delay.interval.ms"] * 1000
            query, parameters = conditions.last_of(self._source(table), start, limit_us, self.values["batch.max.rows"])
            end = self._place(conditions, list(dialect.rows(connection, query, parameters, ())))
            if end is not None:
                found.append(TableRange(table, start, end))
        connection.rollback()
        return found

    def _start(self, positions: SourcePositions, table: TableName | None, now_us: int) -> tuple[Place, bool]:
        """Where reading goes on, and whether that must be noted first because it is the time of this poll."""
        if table is None:
            offset = positions.get(_QUERY_PARTITION)
        else:
            offset = positions.get({"protocol": "1", "table": str(table)}) or positions.get({"table": table.name})
        initial = self.values["timestamp.initial"]
        if offset or initial is None or "timestamp" not in self._mode:
            return Place.of_offset(offset), False
        # The timestamp of the offset itself is not read again, so it is the one before.
        return Place(moment=now_us - 1 if initial == -1 else initial * 1000 - 1), initial == -1

    def _place(self, conditions: Conditions, rows: Sequence[Sequence[Any]]) -> Place | None:
        if not rows:
            return None
        cells = iter(rows[0])
        found_moment = None if conditions.moment is None else moment(str(next(cells)), self.dialect().zone)
        return Place(None if conditions.number is None else int(next(cells)), found_moment)

    # the database's tables

    def _connection(self) -> Any:
        if self._open_connection is None:
            self._open_connection = connected(self.dialect(), self.values, self.context.name)
        return self._open_connection

    def _listed(self, connection: Any) -> list[TableName | None]:
        if self._query:
            return [None]
        dialect = self.dialect()
        there = dialect.tables(connection, self.values["schema.pattern"], self.values["table.types"])
        wanted = {
            setting: [TableName.of(each, setting) for each in self.values[setting] if each]
            for setting in ("table.whitelist", "table.blacklist")
        }
        for each in wanted["table.whitelist"]:
            if not any(_is_named(table, each) for table in there):
                raise ConfigError(f"table.whitelist: there is no table {each}, or the user may not see it")
        if wanted["table.whitelist"]:
            there = [table for table in there if any(_is_named(table, each) for each in wanted["table.whitelist"])]
        return [table for table in there if not any(_is_named(table, each) for each in wanted["table.blacklist"])]

    def _columns(self, connection: Any, table: TableName | None) -> list[TableColumn]:
        dialect = self.dialect()
        if table is None:
            return dialect.query_columns(connection, self._query)
        found = dialect.columns(connection, table)
        if found is None:
            self._tables_at = None
            raise RetriableError(f"the table {table} is there no more")
        return list(found.values())

    def _source(self, table: TableName | None) -> str:
        return (
            f"({self._query}) AS q".replace("%", "%%")
            if table is None
            else self.dialect().table(table).replace("%", "%%")
        )

    def _conditions(self, columns: Sequence[TableColumn], name: str) -> Conditions:
        """Raises `ConfigError` for columns that are missing, or may be null."""
        by_name = {column.name: column for column in columns}
        parameter = self.dialect().parameter
        number = moment_text = None
        if "incrementing" in self._mode:
            column = self._named(by_name, "incrementing.column.name", self._number_column(columns, name), name)
            self._check_null("incrementing.column.name", [column], name)
            number = parameter(column.name)
        if "timestamp" in self._mode:
            given = self.values["timestamp.column.name"]
            found = [self._named(by_name, "timestamp.column.name", each, name) for each in given]
            self._check_null("timestamp.column.name", found, name)
            names = [parameter(column.name) for column in found]
            moment_text = names[0] if len(names) == 1 else f"COALESCE({', '.join(names)})"
        return Conditions(self.dialect(), number, moment_text)

    def _number_column(self, columns: Sequence[TableColumn], name: str) -> str:
        given: str = self.values["incrementing.column.name"]
        if given:
            return given
        keys = [column for column in columns if column.is_key]
        if len(keys) != 1 or keys[0].type_name not in WHOLE_TYPES:
            raise ConfigError(
                f"incrementing.column.name: {name} has no primary key of one whole number: name the column"
            )
        return keys[0].name

    @staticmethod
    def _named(by_name: Mapping[str, TableColumn], setting: str, wanted: str, name: str) -> TableColumn:
        found = by_name.get(wanted) or next((by_name[each] for each in by_name if each.lower() == wanted.lower()), None)
        if found is None:
            raise ConfigError(f"{setting}: {name} has no column {wanted}; it has {', '.join(by_name)}"[:1000])
        return found

    def _check_null(self, setting: str, columns: Sequence[TableColumn], name: str) -> None:
        if self.values["validate.non.null"] and not self._query and all(column.is_nullable for column in columns):
            raise ConfigError(
                f"{setting}: {name}.{columns[0].name} may be null, and rows with a null are never read: make it NOT "
                "NULL, or set validate.non.null=false"
            )

    # in a task

    def read(self, share: SourceShare) -> Iterator[SourceItem]:
        try:
            for each in share.payload:
                if each.is_mark:
                    yield SourceProgress(each.partition, each.end.offset())
                else:
                    yield from self._rows(each)
            self._connection().rollback()
        except GeneratorExit:
            self.close()
            raise
        except Exception as error:
            self.close()
            raise meaning(self.dialect(), error) from error

    def _rows(self, range_: TableRange) -> Iterator[SourceItem]:
        connection, dialect = self._connection(), self.dialect()
        columns = self._columns(connection, range_.table)
        name = "query" if range_.table is None else range_.table.name
        reader = reader_of(
            columns, name, self.values["numeric.mapping"], self.values["timestamp.granularity"], dialect.zone
        )
        conditions = Conditions(dialect, None, None) if range_.end is None else self._conditions(columns, name)
        query, parameters = conditions.rows(
            ", ".join(map(dialect.selected, columns)),
            self._source(range_.table),
            range_.start,
            range_.end,
            self.values["query.suffix"].replace("%", "%%"),
        )
        topic = self.values["topic.prefix"] + ("" if range_.table is None else range_.table.name)
        progress = _Progress(self, columns, range_)
        for row in dialect.rows(connection, query, parameters, columns):
            yield _item(reader, row, topic, range_.partition, progress.offset(row))
        if range_.end is not None:
            yield SourceProgress(range_.partition, range_.end.offset())

    def places(self, columns: Sequence[TableColumn]) -> tuple[list[int], int | None]:
        """The indexes of the columns of timestamps, and that of the column of numbers."""
        names = [column.name.lower() for column in columns]
        moments = [names.index(each.lower()) for each in self.values["timestamp.column.name"]]
        if "timestamp" not in self._mode:
            moments = []
        if "incrementing" not in self._mode:
            return moments, None
        return moments, names.index(self._number_column(columns, "").lower())

    def close(self) -> None:
        connection, self._open_connection = self._open_connection, None
        if connection is not None:
            try:
                connection.close()
            except Exception:
                return  # it was lost already


class _Progress:
    """The offset of each row. Where timestamps alone count, a row's own would leave out others of the same: its offset
    is the timestamp before."""

    def __init__(self, source: JdbcSource, columns: Sequence[TableColumn], range_: TableRange) -> None:
        self._has_end = range_.end is not None
        self._zone = source.dialect().zone
        self._moments, self._number = source.places(columns) if self._has_end else ([], None)
        self._before = range_.start
        self._last: int | None = None

    def offset(self, row: Sequence[Any]) -> dict[str, Any] | None:
        if not self._has_end:
            return None
        found = next((moment(str(row[place]), self._zone) for place in self._moments if row[place] is not None), None)
        if self._number is not None:
            return Place(int(row[self._number]), found).offset()
        if self._last is not None and found != self._last:
            self._before = Place(moment=self._last)
        self._last = found
        return self._before.offset() or None


def _item(
    reader: RowReader, row: Sequence[Any], topic: str, partition: Mapping[str, Any], offset: Mapping[str, Any] | None
) -> SourceItem:
    try:
        value = reader.struct(row)
    except InvalidValue as error:
        texts = {
            field.name: text.hex() if isinstance(text, bytes) else text
            for field, text in zip(reader.schema.fields, row, strict=True)
        }
        return RejectedRecord(
            error=error,
            topic=topic,
            value=json.dumps(texts, ensure_ascii=False).encode("utf-8", "replace"),
            source_partition=partition,
            source_offset=offset,
        )
    return SourceRecord(
        topic=topic,
        value_schema=reader.schema,
        value=value,
        source_partition=partition if offset is not None else None,
        source_offset=offset,
    )


def _is_named(table: TableName, wanted: TableName) -> bool:
    return table.name == wanted.name and wanted.schema in (None, table.schema)
