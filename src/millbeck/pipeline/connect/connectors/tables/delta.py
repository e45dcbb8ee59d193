"""The Delta Lake sink. Each log partition is an application of the table's transactions, its version the position.

Adding the files and the versions is one version of the table. Of two commits with the same application, the table's
protocol lets one fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from millbeck.kernel.extras import needs_extra
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.connector_class import SettingProblem
from millbeck.pipeline.connect.connectors.interface import (
    ConnectorContext,
    SinkConnector,
    SinkRecords,
    SinkReport,
    SinkShare,
)
from millbeck.pipeline.connect.connectors.objects.clock import now_ms
from millbeck.pipeline.connect.connectors.tables.file_names import unique_name
from millbeck.pipeline.connect.connectors.tables.settings import DELTA_SINK, STORAGE_PREFIX
from millbeck.pipeline.connect.connectors.tables.staging import (
    StagedFile,
    adapted_schema,
    adapted_type,
    conformed,
    missing_columns,
    parquet_bytes,
    parts,
    staged,
)
from millbeck.pipeline.connect.errors import ConnectError, InvalidValue, RetriableError

with needs_extra("delta"):
    import deltalake
    import obstore
    import pyarrow as pa
    from deltalake import exceptions
    from deltalake.transaction import AddAction, CommitProperties, Transaction
    from obstore.store import LocalStore, from_url

_NONE: Final = -1
"""The version of an application whose position was reset."""


class DeltaSink(SinkConnector):
    """Appends to a table."""

    declared = DELTA_SINK

    def __init__(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        super().__init__(values, context)
        self._uri: str = values["delta.table.uri"].rstrip("/")
        self._store: Any = None

    def _options(self) -> dict[str, str]:
        return {
            name.removeprefix(STORAGE_PREFIX): text
            for name, text in self.context.settings.items()
            if name.startswith(STORAGE_PREFIX)
        }

    def _table(self) -> Any:
        return deltalake.DeltaTable(self._uri, storage_options=self._options() or None)

    def _application(self, partition: TopicPartition) -> str:
        return f"millbeck/{self.context.name}/{partition.topic}/{partition.partition}"

    # on the worker

    def check(self) -> Iterable[SettingProblem]:
        try:
            self._table()
        except exceptions.TableNotFoundError as error:
            if not self.values["delta.table.auto.create"]:
                yield SettingProblem("delta.table.uri", str(meaning(error)))
        except Exception as error:
            failure = meaning(error)
            if not isinstance(failure, RetriableError):
                yield SettingProblem("delta.table.uri", str(failure))

    def positions(self, committed: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        try:
            table = self._table()
            found = {partition: self._position(table, partition) for partition in committed}
        except exceptions.TableNotFoundError:
            return committed
        except Exception as error:
            raise meaning(error) from error
        return {
            partition: position if (stored := found[partition]) is None else stored
            for partition, position in committed.items()
        }

    def _position(self, table: Any, partition: TopicPartition) -> int | None:
        found = table.transaction_version(self._application(partition))
        return None if found is None or found == _NONE else int(found)

    def commit(self, reports: Sequence[SinkReport]) -> None:
        files = [each for report in reports for each in report.result or ()]
        if not files:
            return  # nothing but records that were left out: the group's positions tell it
        starts = {range_.partition: range_.start for report in reports for range_ in report.share.ranges}
        ends = {partition: position for report in reports for partition, position in report.positions.items()}
        try:
            table = self._table()
            for partition, start in starts.items():
                known = self._position(table, partition)
                if known is not None and known > start:
                    raise RetriableError(
                        f"{partition.topic}-{partition.partition} is in the table up to {known}, not {start}: another "
                        "attempt was faster"
                    )
            self._add(table, files, ends)
        except Exception as error:
            raise meaning(error) from error

    def alter_positions(self, positions: Mapping[TopicPartition, int | None]) -> None:
        try:
            altered = {key: _NONE if value is None else value for key, value in positions.items()}
            self._add(self._table(), [], altered)
        except exceptions.TableNotFoundError:
            return
        except Exception as error:
            raise meaning(error) from error

    def _add(self, table: Any, files: Sequence[StagedFile], positions: Mapping[TopicPartition, int]) -> None:
        moment = now_ms()
        actions = [
            AddAction(
                path=each.path,
                size=each.size,
                partition_values={},
                modification_time=moment,
                data_change=True,
                stats=json.dumps({"numRecords": each.row_count}),
            )
            for each in files
        ]
        transactions = [
            Transaction(app_id=self._application(partition), version=position, last_updated=moment)
            for partition, position in sorted(positions.items())
        ]
        table.create_write_transaction(
            actions,
            mode="append",
            schema=table.schema(),
            partition_by=[],
            commit_properties=CommitProperties(app_transactions=transactions, max_commit_retries=0),
        )

    # in a task

    def write(self, share: SinkShare, records: SinkRecords) -> list[StagedFile]:
        tables = staged(records)
        try:
            return [each for table in tables for each in self._written(table)]
        except Exception as error:
            raise meaning(error) from error

    def _written(self, rows: Any) -> list[StagedFile]:
        rows = conformed(rows, adapted_schema(rows.schema, delta_type))
        target = pa.schema(self._table_for(rows).schema())
        conforming = conformed(rows, target)
        found = []
        for part in parts(conforming, self.values["file.rows.max"]):
            content = parquet_bytes(part)
            name = unique_name(self.context.name)
            obstore.put(self.store(), name, content)
            found.append(StagedFile(name, len(content), part.num_rows))
        return found

    def store(self) -> Any:
        if self._store is None:
            url = urlsplit(self._uri)
            if url.scheme in ("", "file"):
                self._store = LocalStore(prefix=unquote(url.path), mkdir=True)
            else:
                options: Any = self._options()
                self._store = from_url(self._uri, config=options)
        return self._store

    def _table_for(self, rows: Any) -> Any:
        try:
            table = self._table()
        except exceptions.TableNotFoundError:
            if not self.values["delta.table.auto.create"]:
                raise
            options = self._options() or None
            table = deltalake.DeltaTable.create(self._uri, schema=rows.schema, mode="ignore", storage_options=options)
        if table.metadata().partition_columns:
            raise ConnectError(f"the table {self._uri} is partitioned, which this sink does not write")
        missing = missing_columns(rows, pa.schema(table.schema()))
        if missing:
            names = ", ".join(field.name for field in missing)
            if not self.values["delta.table.evolve"]:
                raise ConnectError(
                    f"the table {self._uri} has no columns {names}: add them, or set delta.table.evolve=true"
                )
            added = deltalake.Schema.from_arrow(pa.schema([field.with_nullable(True) for field in missing]))
            table.alter.add_columns(added.fields)
            table = self._table()
        return table


def delta_type(kind: Any) -> Any:
    return adapted_type(kind, _leaf)


def _leaf(kind: Any) -> Any:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    # Delta Lake has no type of times of day: they are microseconds.
    return pa.int64() if pa.types.is_time(kind) else kind


def meaning(error: Exception) -> Exception:
    """What an error of the table or the store means to the worker."""
    if isinstance(error, ConnectError):
        return error
    text = f"{type(error).__name__}: {str(error).strip()}"[:1000]
    if isinstance(error, exceptions.TableNotFoundError):
        return ConnectError(f"{text}: create the table, or set delta.table.auto.create=true")
    if isinstance(error, (exceptions.SchemaMismatchError, exceptions.DeltaProtocolError)) and "oncurrent" not in text:
        return ConnectError(text)
    if isinstance(error, (pa.ArrowInvalid, pa.ArrowTypeError)):
        return InvalidValue(text)
    return RetriableError(text)
