"""The Iceberg sink. The positions are in the summary of the snapshot that adds the files.

The summary has the positions of all partitions of the connector, so the newest of the branch that has any is the truth.
A commit is refused by the catalog if the branch has moved since the positions were read: pyiceberg's own retries, which
would not look at them again, are off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

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
from millbeck.pipeline.connect.connectors.tables.file_names import unique_name
from millbeck.pipeline.connect.connectors.tables.settings import CATALOG_PREFIX, ICEBERG_SINK
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

with needs_extra("iceberg"):
    import pyarrow as pa
    from pyiceberg import exceptions
    from pyiceberg.catalog import load_catalog

_LASTING: Final = (
    exceptions.NoSuchTableError,
    exceptions.NoSuchNamespaceError,
    exceptions.NoSuchIcebergTableError,
    exceptions.UnauthorizedError,
    exceptions.ForbiddenError,
    exceptions.BadRequestError,
    exceptions.NotInstalledError,
)
_SNAPSHOTS_MAX: Final = 10_000


class IcebergSink(SinkConnector):
    """Appends to a table."""

    declared = ICEBERG_SINK

    def __init__(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        super().__init__(values, context)
        self._catalog: Any = None
        self._property = f"millbeck.positions.{context.name}"
        self._name: str = values["iceberg.tables"][0]

    def catalog(self) -> Any:
        if self._catalog is None:
            given = {
                name.removeprefix(CATALOG_PREFIX): text
                for name, text in self.context.settings.items()
                if name.startswith(CATALOG_PREFIX)
            }
            self._catalog = load_catalog(self.values["iceberg.catalog"], **given)
        return self._catalog

    # on the worker

    def check(self) -> Iterable[SettingProblem]:
        try:
            self._table()
        except Exception as error:
            failure = meaning(error)
            is_missing = isinstance(error, exceptions.NoSuchTableError)
            if isinstance(failure, RetriableError) or (
                is_missing and self.values["iceberg.tables.auto-create-enabled"]
            ):
                return
            yield SettingProblem("iceberg.tables" if is_missing else "iceberg.catalog.uri", str(failure))

    def _table(self) -> Any:
        return self.catalog().load_table(self._name)

    def positions(self, committed: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        try:
            found = self._stored(self._table())
        except exceptions.NoSuchTableError:
            return committed
        except Exception as error:
            raise meaning(error) from error
        return {partition: found.get(partition, position) for partition, position in committed.items()}

    def _stored(self, table: Any) -> dict[TopicPartition, int]:
        """The positions of the newest snapshot of the branch that has any."""
        snapshot = table.current_snapshot()
        for _ in range(_SNAPSHOTS_MAX):
            if snapshot is None:
                return {}
            text = None if snapshot.summary is None else snapshot.summary.additional_properties.get(self._property)
            if text is not None:
                found = json.loads(text)
                return {
                    TopicPartition(topic, int(partition)): int(position)
                    for topic, partitions in found.items()
                    for partition, position in partitions.items()
                }
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else table.snapshot_by_id(parent)
        return {}

    def _summary(self, positions: Mapping[TopicPartition, int]) -> dict[str, str]:
        found: dict[str, dict[str, int]] = {}
        for place, position in sorted(positions.items()):
            found.setdefault(place.topic, {})[str(place.partition)] = position
        return {self._property: json.dumps(found, separators=(",", ":"))}

    def commit(self, reports: Sequence[SinkReport]) -> None:
        files = [each for report in reports for each in report.result or ()]
        if not files:
            return  # nothing but records that were left out: the group's positions tell it
        starts = {range_.partition: range_.start for report in reports for range_ in report.share.ranges}
        ends = {partition: position for report in reports for partition, position in report.positions.items()}
        try:
            table = self._table()
            known = self._stored(table)
            for partition, start in starts.items():
                if known.get(partition, start) > start:
                    raise RetriableError(
                        f"{partition.topic}-{partition.partition} is in the table up to {known[partition]}, not "
                        f"{start}: another attempt was faster"
                    )
            _without_retries(table)
            summary = self._summary({**known, **ends})
            paths = [each.path for each in files]
            table.add_files(paths, snapshot_properties=summary, check_duplicate_files=False)
        except Exception as error:
            raise meaning(error) from error

    def alter_positions(self, positions: Mapping[TopicPartition, int | None]) -> None:
        try:
            table = self._table()
            known = {**self._stored(table), **{key: -1 if value is None else value for key, value in positions.items()}}
            kept = {partition: position for partition, position in known.items() if position >= 0}
            _without_retries(table)
            with table.transaction() as transaction, transaction.update_snapshot(self._summary(kept)).fast_append():
                pass  # a snapshot without files
        except exceptions.NoSuchTableError:
            return
        except Exception as error:
            raise meaning(error) from error

    # in a task

    def write(self, share: SinkShare, records: SinkRecords) -> list[StagedFile]:
        tables = staged(records)
        try:
            return [each for table in tables for each in self._written(table)]
        except Exception as error:
            raise meaning(error) from error

    def _written(self, rows: Any) -> list[StagedFile]:
        rows = rows.cast(adapted_schema(rows.schema, iceberg_type)) if rows.num_rows else rows
        table = self._table_for(rows)
        conforming = conformed(rows, table.schema().as_arrow())
        found = []
        for part in parts(conforming, self.values["file.rows.max"]):
            content = parquet_bytes(part)
            path = f"{table.location()}/data/{unique_name(self.context.name)}"
            with table.io.new_output(path).create() as stream:
                stream.write(content)
            found.append(StagedFile(path, len(content), part.num_rows))
        return found

    def _table_for(self, rows: Any) -> Any:
        try:
            table = self._table()
        except exceptions.NoSuchTableError:
            if not self.values["iceberg.tables.auto-create-enabled"]:
                raise
            self.catalog().create_namespace_if_not_exists(self._name.rpartition(".")[0])
            table = self.catalog().create_table_if_not_exists(self._name, schema=rows.schema)
        if not table.spec().is_unpartitioned():
            raise ConnectError(f"the table {self._name} is partitioned, which this sink does not write")
        missing = missing_columns(rows, table.schema().as_arrow())
        if missing:
            names = ", ".join(field.name for field in missing)
            if not self.values["iceberg.tables.evolve-schema-enabled"]:
                raise ConnectError(
                    f"the table {self._name} has no columns {names}: add them, or set "
                    "iceberg.tables.evolve-schema-enabled=true"
                )
            with table.update_schema() as update:
                update.union_by_name(pa.schema([field.with_nullable(True) for field in rows.schema]))
            table = self._table()
        return table


def _without_retries(table: Any) -> None:
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})


def iceberg_type(kind: Any) -> Any:
    return adapted_type(kind, _leaf)


def _leaf(kind: Any) -> Any:
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    return pa.time64("us") if pa.types.is_time(kind) else kind


def meaning(error: Exception) -> Exception:
    """What an error of the catalog or the store means to the worker."""
    if isinstance(error, ConnectError):
        return error
    text = f"{type(error).__name__}: {str(error).strip()}"[:1000]
    if isinstance(error, _LASTING):
        return ConnectError(f"{text}: check iceberg.tables, iceberg.catalog.uri and the credentials")
    if isinstance(error, (pa.ArrowInvalid, pa.ArrowTypeError)):
        return InvalidValue(text)
    return RetriableError(text)
