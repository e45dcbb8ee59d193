"""Rows of one table to records: the schemas of key, value and envelope, made once for each shape of the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from millbeck import __version__
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.schema import (
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Field,
    Schema,
    SchemaType,
    array_schema,
    struct_schema,
)
from millbeck.pipeline.connect.model.struct import Struct
from millbeck.pipeline.connect.postgres.pgoutput import UNCHANGED, Cells
from millbeck.pipeline.connect.postgres.settings import PostgresSettings
from millbeck.pipeline.connect.postgres.tables import Column, ColumnType, Table, TypeKind
from millbeck.pipeline.connect.postgres.values.codecs import codec_of
from millbeck.pipeline.connect.postgres.values.options import Codec

_CONSTANT: Final = re.compile(
    r"(?:'((?:[^']|'')*)'|(-?\d+(?:\.\d+)?)|\((-\d+(?:\.\d+)?)\)|(true|false))(?:::[\w\s.\"(),\[\]]+)?", re.IGNORECASE
)

SOURCE_SCHEMA: Final = Schema(
    SchemaType.STRUCT,
    name="io.debezium.connector.postgresql.Source",
    version=1,
    fields=(
        Field("version", STRING_SCHEMA),
        Field("connector", STRING_SCHEMA),
        Field("name", STRING_SCHEMA),
        Field("ts_ms", INT64_SCHEMA),
        Field(
            "snapshot",
            Schema(
                SchemaType.STRING,
                optional=True,
                default="false",
                name="io.debezium.data.Enum",
                version=1,
                parameters={
                    "allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
                },
            ),
        ),
        Field("db", STRING_SCHEMA),
        Field("sequence", OPTIONAL_STRING_SCHEMA),
        Field("ts_us", OPTIONAL_INT64_SCHEMA),
        Field("ts_ns", OPTIONAL_INT64_SCHEMA),
        Field("schema", STRING_SCHEMA),
        Field("table", STRING_SCHEMA),
        Field("txId", OPTIONAL_INT64_SCHEMA),
        Field("lsn", OPTIONAL_INT64_SCHEMA),
        Field("xmin", OPTIONAL_INT64_SCHEMA),
        Field("origin", OPTIONAL_STRING_SCHEMA),
        Field("origin_lsn", OPTIONAL_INT64_SCHEMA),
    ),
)
TRANSACTION_BLOCK: Final = Schema(
    SchemaType.STRUCT,
    optional=True,
    name="event.block",
    version=1,
    fields=(
        Field("id", STRING_SCHEMA),
        Field("total_order", INT64_SCHEMA),
        Field("data_collection_order", INT64_SCHEMA),
    ),
)
_TIMES: Final = tuple(Field(name, OPTIONAL_INT64_SCHEMA) for name in ("ts_ms", "ts_us", "ts_ns"))


@dataclass(frozen=True, slots=True)
class SystemSchemas:
    """Schemas of records that belong to no table."""

    heartbeat_key: Schema
    heartbeat_value: Schema
    transaction_key: Schema
    transaction_value: Schema
    message_key: Schema
    message_block: Schema
    message_value: Schema

    @classmethod
    def of(cls, settings: PostgresSettings) -> SystemSchemas:
        def named(name: str, *fields: Field, optional: bool = False) -> Schema:
            shown = settings.naming.schema_name(f"io.debezium.connector.{name}")
            return Schema(SchemaType.STRUCT, name=shown, version=1, fields=fields, optional=optional)

        counts = Schema(
            SchemaType.STRUCT,
            name="event.collection",
            version=1,
            optional=True,
            fields=(Field("data_collection", STRING_SCHEMA), Field("event_count", INT64_SCHEMA)),
        )
        content = codec_of_bytes(settings)
        block = named(
            "postgresql.Message",
            Field("prefix", OPTIONAL_STRING_SCHEMA),
            Field("content", replace(content.schema, optional=True)),
        )
        return cls(
            heartbeat_key=named("common.ServerNameKey", Field("serverName", STRING_SCHEMA)),
            heartbeat_value=named("common.Heartbeat", Field("ts_ms", INT64_SCHEMA)),
            transaction_key=named("common.TransactionMetadataKey", Field("id", STRING_SCHEMA)),
            transaction_value=named(
                "common.TransactionMetadataValue",
                Field("status", STRING_SCHEMA),
                Field("id", STRING_SCHEMA),
                Field("event_count", OPTIONAL_INT64_SCHEMA),
                Field("data_collections", array_schema(counts, optional=True)),
                Field("ts_ms", INT64_SCHEMA),
            ),
            message_key=named("postgresql.MessageKey", Field("prefix", OPTIONAL_STRING_SCHEMA)),
            message_block=block,
            message_value=named(
                "postgresql.MessageValue",
                Field("op", STRING_SCHEMA),
                Field("ts_ms", OPTIONAL_INT64_SCHEMA),
                Field("source", SOURCE_SCHEMA),
                Field("transaction", TRANSACTION_BLOCK),
                Field("message", block),
            ),
        )


def codec_of_bytes(settings: PostgresSettings) -> Codec:
    """The codec of bytes that are given as they are."""
    found = codec_of(ColumnType("bytes", TypeKind.OTHER), -1, replace(settings.value_options, includes_unknown=True))
    assert found is not None
    return found


def struct_of(schema: Schema, *values: Any) -> Struct:
    """A struct with values that are known to fit."""
    made = Struct(schema)
    made.values = list(values)
    return made


def stamps(time_us: int) -> tuple[int, int, int]:
    return time_us // 1000, time_us, time_us * 1000


@dataclass(slots=True)
class SourceBlock:
    """Where a change comes from; the fields of Debezium's source block."""

    server: str
    database: str
    time_us: int = 0
    snapshot: str = "false"
    last_commit_lsn: int | None = None
    lsn: int | None = None
    transaction_id: int | None = None
    origin: str | None = None
    origin_lsn: int | None = None

    def struct(self, schema: str, table: str) -> Struct:
        commit = "null" if self.last_commit_lsn is None else f'"{self.last_commit_lsn}"'
        lsn = "null" if self.lsn is None else f'"{self.lsn}"'
        time_us = self.time_us
        made = Struct(SOURCE_SCHEMA)
        made.values = [
            __version__, "postgresql", self.server, time_us // 1000, self.snapshot, self.database, f"[{commit},{lsn}]",
            time_us, time_us * 1000, schema, table, self.transaction_id, self.lsn, None, self.origin, self.origin_lsn,
        ]  # fmt: skip
        return made


@dataclass(frozen=True, slots=True)
class _Reader:
    """How one column of a row is read."""

    name: str
    place: int
    decode: Callable[[bytes], Any]
    missing: Any
    """What stands for a null: None, or what a column that cannot be null has when the log does not have it."""
    placeholder: Any


class TableRecords:
    """The records of one shape of a table."""

    def __init__(self, table: Table, settings: PostgresSettings) -> None:
        self.table = table
        self.topic = settings.naming.topic(table.id)
        self._takes_failures = settings.values["event.converting.failure.handling.mode"] != "fail"
        places = {column.name: place for place, column in enumerate(table.columns)}
        fields: list[Field] = []
        readers: list[_Reader] = []
        by_name: dict[str, tuple[Field, _Reader]] = {}
        for column in table.columns:
            found = _field(table, column, places[column.name], settings)
            if found is None:
                continue
            by_name[column.name] = found
            if settings.capture.has_column(table.id, column.name):
                fields.append(found[0])
                readers.append(found[1])
        self._readers = tuple(readers)
        names = settings.naming
        value_name = names.schema_name(f"{self.topic}.Value")
        self.value_schema = struct_schema(fields, optional=True, basis=Schema(SchemaType.STRUCT, name=value_name))
        self.envelope_schema = Schema(
            SchemaType.STRUCT,
            name=names.schema_name(f"{self.topic}.Envelope"),
            version=2,
            fields=(
                Field("before", self.value_schema),
                Field("after", self.value_schema),
                Field("source", SOURCE_SCHEMA),
                Field("transaction", TRANSACTION_BLOCK),
                Field("op", STRING_SCHEMA),
                *_TIMES,
            ),
        )
        key = [by_name[name] for name in settings.key_of(table) if name in by_name]
        self._key_readers = tuple(reader for _, reader in key)
        self.key_schema = (
            struct_schema(
                [field for field, _ in key],
                basis=Schema(SchemaType.STRUCT, name=names.schema_name(f"{self.topic}.Key")),
            )
            if key
            else None
        )

    def row(self, cells: Cells, old: Cells | None = None) -> Struct:
        """A row's struct; ``old`` has what an update left alone, if the log does. Raises `InvalidValue`."""
        return self._struct(self.value_schema, self._readers, cells, old)

    def key(self, cells: Cells, old: Cells | None = None) -> Struct | None:
        return None if self.key_schema is None else self._struct(self.key_schema, self._key_readers, cells, old)

    def _struct(self, schema: Schema, readers: tuple[_Reader, ...], cells: Cells, old: Cells | None) -> Struct:
        values: list[Any] = []
        for reader in readers:
            cell = cells[reader.place]
            if cell is UNCHANGED and old is not None:
                cell = old[reader.place]
            if cell is None:
                values.append(reader.missing)
            elif cell is UNCHANGED:
                values.append(reader.missing if reader.placeholder is None else reader.placeholder)
            else:
                try:
                    values.append(reader.decode(cell))
                except (ValueError, ArithmeticError) as error:
                    if not self._takes_failures:
                        raise InvalidValue(f"{self.table.id}.{reader.name}: {_shown(error)}") from None
                    values.append(reader.missing)
        made = Struct(schema)
        made.values = values
        return made


def _shown(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "a text is not UTF-8"
    return str(error) or type(error).__name__


def _field(table: Table, column: Column, place: int, settings: PostgresSettings) -> tuple[Field, _Reader] | None:
    codec = codec_of(column.type, column.modifier, settings.value_options)
    if codec is None:
        return None
    default = _constant(column, codec)
    schema, decode = codec.schema, codec.decode
    if schema.type is SchemaType.STRING:
        for mask in settings.masks:
            if mask.has(table.id, column.name):
                name, text = mask.parameter
                schema = replace(schema, parameters={**(schema.parameters or {}), name: text})
                decode = _masked(decode, mask.change)
                default = None
    doc = column.comment if settings.values["include.schema.comments"] else None
    schema = replace(schema, optional=column.optional, default=default, doc=doc or schema.doc)
    codec = replace(codec, decode=decode).with_schema(schema)
    missing = None if column.optional else (codec.fallback if default is None else default)
    reader = _Reader(column.name, place, codec.decode, missing, codec.placeholder)
    return Field(settings.naming.field_name(column.name), schema), reader


def _masked(decode: Callable[[bytes], Any], change: Callable[[str], str]) -> Callable[[bytes], Any]:
    return lambda data: change(decode(data))


def _constant(column: Column, codec: Codec) -> Any:
    """The value of a default that is a constant; None for anything that has to be computed."""
    if column.default is None or codec.schema.type in (SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT):
        return None
    found = _CONSTANT.fullmatch(column.default)
    if found is None:
        return None
    quoted, number, negative, boolean = found.groups()
    text = quoted.replace("''", "'") if quoted is not None else number or negative or boolean[0].lower()
    try:
        return codec.decode(text.encode())
    except (ValueError, ArithmeticError):
        return None
