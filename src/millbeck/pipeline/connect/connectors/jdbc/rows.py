"""Records to rows: which columns a record has, which of them are the key, and the parameters of its statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from millbeck.pipeline.connect.connectors.jdbc.dialect import Bind, Dialect, NewColumn
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.model.schema import INT32_SCHEMA, INT64_SCHEMA, STRING_SCHEMA, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct

COORDINATES: Final = ("__connect_topic", "__connect_partition", "__connect_offset")
_COORDINATE_SCHEMAS: Final = (STRING_SCHEMA, INT32_SCHEMA, INT64_SCHEMA)
Read = Callable[[SinkRecord], Any]


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column and where its value comes from."""

    column: NewColumn
    read: Read
    bind: Bind

    @property
    def name(self) -> str:
        return self.column.name

    def parameter(self, record: SinkRecord, dialect: Dialect) -> Any:
        value = self.read(record)
        if value is None:
            if self.column.is_key:
                raise InvalidValue(f"the column {self.name} of the primary key is null")
            return None
        bound = self.bind(value)
        dialect.ensure_text(bound)
        return bound


@dataclass(frozen=True, slots=True)
class RowShape:
    """The columns of all records with one pair of schemas."""

    keys: tuple[RowColumn, ...]
    others: tuple[RowColumn, ...]

    @property
    def columns(self) -> tuple[RowColumn, ...]:
        return (*self.keys, *self.others)

    @property
    def new_columns(self) -> list[NewColumn]:
        return [each.column for each in self.columns]


class RowShapes:
    """Shapes by schemas, as pk.mode, pk.fields and fields.whitelist have it."""

    def __init__(self, values: Mapping[str, Any], dialect: Dialect) -> None:
        self._mode: str = values["pk.mode"].lower()
        self._fields: tuple[str, ...] = tuple(values["pk.fields"])
        self._kept = frozenset(values["fields.whitelist"])
        self._fills_defaults: bool = values["replace.null.with.default"]
        self._dialect = dialect
        self._known: dict[tuple[Schema | None, Schema | None], RowShape] = {}

    def of(self, record: SinkRecord) -> RowShape:
        """Raises `InvalidValue` for a record that has no columns, `ConfigError` for settings that do not fit."""
        place = (record.key_schema, record.value_schema)
        found = self._known.get(place)
        if found is None:
            found = self._made(record)
            if len(self._known) >= 1000:
                self._known.clear()
            self._known[place] = found
        return found

    def deletion(self, record: SinkRecord) -> RowShape:
        """The shape of a record without a value: its key alone."""
        return self.of(record.with_(value_schema=None, value=None))

    def parameters(self, columns: tuple[RowColumn, ...], record: SinkRecord) -> list[Any]:
        return [each.parameter(record, self._dialect) for each in columns]

    def _made(self, record: SinkRecord) -> RowShape:
        keys = self._keys(record)
        names = {each.name for each in keys}
        if self._mode == "record_key" and not keys:
            raise ConfigError("pk.mode: record_key needs a key with fields, or a plain key and one name in pk.fields")
        others: list[RowColumn] = []
        if record.value_schema is not None:
            struct = _struct_schema(record.value_schema, "value")
            for field in struct.fields:
                if field.name in names or (self._kept and field.name not in self._kept):
                    continue
                others.append(self._column(NewColumn(field.name, field.schema), self._of_value(field.name)))
        if not keys and not others:
            raise InvalidValue("no fields are left to write: check fields.whitelist")
        return RowShape(tuple(keys), tuple(others))

    def _keys(self, record: SinkRecord) -> list[RowColumn]:
        match self._mode:
            case "kafka":
                names = self._fields or COORDINATES
                reads: tuple[Read, ...] = (
                    lambda each: each.topic if each.origin is None else each.origin.topic,
                    lambda each: each.partition if each.origin is None else each.origin.partition,
                    lambda each: each.offset,
                )
                return [
                    self._column(NewColumn(name, schema, is_key=True), read)
                    for name, schema, read in zip(names, _COORDINATE_SCHEMAS, reads, strict=True)
                ]
            case "record_key":
                return self._keys_of(record.key_schema, "key", lambda each: each.key)
            case "record_value":
                if record.value_schema is None:
                    return []
                return self._keys_of(record.value_schema, "value", lambda each: each.value)
        return []

    def _keys_of(self, schema: Schema | None, part: str, take: Read) -> list[RowColumn]:
        if schema is None:
            raise InvalidValue(
                f"the {part} has no schema, which pk.mode={self._mode} needs: use a converter with schemas"
            )
        if schema.type is not SchemaType.STRUCT:
            if part == "value" or len(self._fields) != 1:
                raise ConfigError.of(
                    "pk.fields",
                    ",".join(self._fields),
                    f"the {part} is a {schema.type.name}: name the one column that it goes to",
                )
            return [self._column(NewColumn(self._fields[0], schema, is_key=True), take)]
        found: list[RowColumn] = []
        for name in self._fields or tuple(field.name for field in schema.fields):
            field = schema.field(name)
            if field is None:
                raise ConfigError.of("pk.fields", ",".join(self._fields), f"the record's {part} has no field {name}")
            found.append(self._column(NewColumn(name, field.schema, is_key=True), self._of_struct(take, name)))
        return found

    def _column(self, column: NewColumn, read: Read) -> RowColumn:
        return RowColumn(column, read, self._dialect.bind(column.schema))

    def _of_value(self, name: str) -> Read:
        return self._of_struct(lambda record: record.value, name)

    def _of_struct(self, take: Read, name: str) -> Read:
        with_default = self._fills_defaults

        def read(record: SinkRecord) -> Any:
            struct = take(record)
            if not isinstance(struct, Struct):
                raise InvalidValue("the record is null where the key of its row should be")
            return struct.read(name, with_default=with_default)

        return read


def _struct_schema(schema: Schema, part: str) -> Schema:
    if schema.type is not SchemaType.STRUCT:
        raise InvalidValue(f"the {part} is a {schema.type.name}: a row needs a struct with a schema")
    return schema
