"""Records to the columns of a table, and Parquet files of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.connect.connectors.interface import SinkRecords
from millbeck.pipeline.connect.connectors.objects.arrow_rows import arrow_schema, plain_value, table_of
from millbeck.pipeline.connect.errors import ConnectError, InvalidValue
from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.model.schema import Schema, SchemaType

with needs_extra("objects"):
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS_AT_ONCE: Final = 5000


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that is written and not yet part of the table."""

    path: str
    size: int
    row_count: int


class StagedRows:
    """The rows of a share, by their schemas, in columns."""

    def __init__(self) -> None:
        self._schema: Schema | None = None
        self._rows: list[Any] = []
        self._tables: dict[Schema, list[Any]] = {}

    def add(self, record: SinkRecord) -> None:
        """Raises `InvalidValue`."""
        if record.value is None:
            raise InvalidValue("the record has no value: drop it with the Filter transform and RecordIsTombstone")
        schema = record.value_schema
        if schema is None or schema.type is not SchemaType.STRUCT:
            raise InvalidValue("a row needs a struct with a schema: use a converter with schemas")
        if schema != self._schema:
            self._gather()
            arrow_schema(schema)
            self._schema = schema
        row = plain_value(schema, record.value)
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._gather()

    def _gather(self) -> None:
        if self._rows:
            assert self._schema is not None
            self._tables.setdefault(self._schema, []).append(table_of(self._schema, self._rows))
            self._rows = []

    def tables(self) -> list[Any]:
        """A table for each schema."""
        self._gather()
        return [pa.concat_tables(each) for each in self._tables.values()]


def staged(records: SinkRecords) -> list[Any]:
    """The tables of all records of a share; those that have no columns are rejected."""
    rows = StagedRows()
    for record in records:
        try:
            rows.add(record)
        except InvalidValue as error:
            records.reject(record, error)
    return rows.tables()


def adapted_schema(schema: Any, adapt: Callable[[Any], Any]) -> Any:
    """A schema in the types that a table format has."""
    return pa.schema([pa.field(each.name, adapt(each.type), each.nullable) for each in schema])


def adapted_type(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    """A type whose leaves are those of a table format."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, adapted_type(each.type, leaf), each.nullable) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", adapted_type(kind.value_type, leaf), kind.value_field.nullable))
    if pa.types.is_map(kind):
        value = pa.field("value", adapted_type(kind.item_type, leaf), kind.item_field.nullable)
        return pa.map_(adapted_type(kind.key_type, leaf), value)
    return leaf(kind)


def missing_columns(table: Any, target: Any) -> list[Any]:
    """The columns that the table's schema does not have."""
    known = {field.name for field in target}
    return [field for field in table.schema if field.name not in known]


def conformed(table: Any, target: Any) -> Any:
    """A table with the columns of the target's schema, in its order. Raises `ConnectError`."""
    columns = []
    for field in target:
        place = table.schema.get_field_index(field.name)
        if place < 0:
            if not field.nullable:
                raise ConnectError(f"the table's column {field.name} is required, and the records do not have it")
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        try:
            columns.append(_cast(table.column(place), field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ConnectError(f"the column {field.name} cannot be written as {field.type}: {error}"[:500]) from error
        if not field.nullable and columns[-1].null_count:
            raise ConnectError(f"the table's column {field.name} is required, and a record has null there")
    return pa.Table.from_arrays(columns, schema=target)


def _cast(column: Any, kind: Any) -> Any:
    if pa.types.is_time32(column.type):
        column = column.cast(pa.time64("us"))
    return column if column.type.equals(kind) else column.cast(kind)


def parquet_bytes(table: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="zstd")
    return stream.getvalue()


def parts(table: Any, rows_max: int) -> Iterator[Any]:
    """A table in pieces, one for each file."""
    for start in range(0, table.num_rows, rows_max):
        yield table.slice(start, rows_max)
