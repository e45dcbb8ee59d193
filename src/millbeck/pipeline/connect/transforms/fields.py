"""Transforms that take fields out, put values into one, choose and rename them: ExtractField, HoistField,
ReplaceField, MaskField and ValueToKey.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

from millbeck.pipeline.connect.config.checks import non_empty_list, non_empty_text, one_of_ignoring_case, parsed_by
from millbeck.pipeline.connect.config.definitions import LIST, STRING, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.field_path import FieldPath
from millbeck.pipeline.connect.model.logical import Instant
from millbeck.pipeline.connect.model.numbers import Float32
from millbeck.pipeline.connect.model.record import ConnectRecord
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType, struct_schema
from millbeck.pipeline.connect.model.struct import Struct, java_class, type_of
from millbeck.pipeline.connect.model.values import decimal_from, float_number_of, whole_number_of
from millbeck.pipeline.connect.transforms.base import (
    REPLACE_NULL_WITH_DEFAULT,
    SidedTransformation,
    required_dict,
    required_struct,
)

FIELD_SYNTAX = ConfigKey(
    name="field.syntax.version",
    kind=STRING,
    default="V1",
    check=one_of_ignoring_case("V1", "V2"),
    importance=Importance.HIGH,
    doc="V1: the name of a field at the top. V2: a path with dots; `back.ticks` enclose a name that has dots itself.",
)


class ExtractField(SidedTransformation):
    """The value of one field in place of the struct or map around it."""

    purpose = "field extraction"
    skips_null = False
    config_def: ClassVar = ConfigDef(
        ConfigKey(name="field", kind=STRING, importance=Importance.MEDIUM, doc="The field to take out."),
        REPLACE_NULL_WITH_DEFAULT,
        FIELD_SYNTAX,
    )

    def configure(self, values: Mapping[str, Any]) -> None:
        self._field: str = values["field"]
        self._path = FieldPath.of(self._field, is_nested=values["field.syntax.version"].upper() == "V2")

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        if value is not None:
            value = self._path.value_of_map(self.required_dict(value))
        return self.side.changed(record, None, value)

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        struct = None if value is None else self.required_struct(value)
        field = self._path.field_of(schema)
        if field is None:
            raise InvalidValue(f"Unknown field: {self._field}")
        if struct is not None:
            value = self._path.value_of_struct(struct, with_default=self.fills_defaults)
        return self.side.changed(record, field.schema, value)


class HoistField(SidedTransformation):
    """The key or value as the only field of a struct, or of a map where there is no schema."""

    skips_null = False
    config_def: ClassVar = ConfigDef(
        ConfigKey(name="field", kind=STRING, importance=Importance.MEDIUM, doc="The name of the field to make.")
    )

    def configure(self, values: Mapping[str, Any]) -> None:
        self._field: str = values["field"]

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        return self.side.changed(record, None, {self._field: value})

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        updated = self.changed_schema(schema, lambda inner: struct_schema([Field(self._field, inner)]))
        return self.side.changed(record, updated, Struct.of(updated, {self._field: value}))


def parsed_renames(entries: tuple[str, ...]) -> dict[str, str]:
    """New names by old ones. Raises ValueError."""
    renames: dict[str, str] = {}
    for entry in entries:
        parts = entry.split(":")
        if len(parts) != 2 or not parts[1]:
            raise ValueError(f"Invalid rename mapping: {entry}")
        renames[parts[0]] = parts[1]
    return renames


class ReplaceField(SidedTransformation):
    """Fewer fields, or fields by other names."""

    purpose = "field replacement"
    config_def: ClassVar = ConfigDef(
        ConfigKey(name="exclude", kind=LIST, default=(), doc="Fields to leave out, even if they are included as well."),
        ConfigKey(name="include", kind=LIST, default=(), doc="The fields to keep; all of them when empty."),
        ConfigKey(
            name="renames",
            kind=LIST,
            default=(),
            check=parsed_by(parsed_renames, "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>"),
            doc="Fields to rename, as old1:new1,old2:new2.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    )

    def configure(self, values: Mapping[str, Any]) -> None:
        self._excluded = frozenset(values["exclude"])
        self._included = frozenset(values["include"])
        self._renames = parsed_renames(values["renames"])
        self._originals = {new: old for old, new in self._renames.items()}

    def _is_kept(self, name: str) -> bool:
        return name not in self._excluded and (not self._included or name in self._included)

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        kept = {
            self._renames.get(name, name): each
            for name, each in self.required_dict(value).items()
            if self._is_kept(name)
        }
        return self.side.changed(record, None, kept)

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        before = self.required_struct(value)
        updated = self.changed_schema(before.schema, self._updated)
        after = Struct(updated)
        for field in updated.fields:
            after[field.name] = self.read(before, self._originals.get(field.name, field.name))
        return self.side.changed(record, updated, after)

    def _updated(self, schema: Schema) -> Schema:
        return schema.with_fields(
            Field(self._renames.get(field.name, field.name), field.schema)
            for field in schema.fields
            if self._is_kept(field.name)
        )


class MaskField(SidedTransformation):
    """Fields emptied (0, false, an empty text), or replaced."""

    purpose = "mask fields"
    skips_null = False
    config_def: ClassVar = ConfigDef(
        ConfigKey(
            name="fields", kind=LIST, check=non_empty_list(), importance=Importance.HIGH, doc="The fields to mask."
        ),
        ConfigKey(
            name="replacement",
            kind=STRING,
            default=None,
            check=non_empty_text(),
            importance=Importance.LOW,
            doc="What numbers and texts are replaced with, instead of being emptied.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    )

    def configure(self, values: Mapping[str, Any]) -> None:
        self._fields: tuple[str, ...] = tuple(dict.fromkeys(values["fields"]))
        self._replacement: str | None = values["replacement"]

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        changed = dict(self.required_dict(value))
        for name in self._fields:
            changed[name] = self._masked(changed.get(name))
        return self.side.changed(record, None, changed)

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        before = self.required_struct(value)
        after = Struct(before.schema)
        for field in before.schema.fields:
            found = self.read(before, field.name)
            after[field.name] = self._masked(found) if field.name in self._fields else found
        return self.side.changed(record, schema, after)

    def _masked(self, value: Any) -> Any:
        if value is None:
            return None
        return _emptied(value) if self._replacement is None else _replaced(value, self._replacement)


def _emptied(value: Any) -> Any:
    match value:
        case bool():
            return False
        case int() | float():
            return type(value)(0)
        case Decimal():
            return Decimal(0)
        case Instant():
            return Instant(0)
        case str():
            return ""
        case list():
            return []
        case dict():
            return {}
    raise InvalidValue(f"Cannot mask value of type: class {java_class(value)}")


def _replaced(value: Any, replacement: str) -> Any:
    kind = type_of(value)
    try:
        if isinstance(value, Decimal):
            return decimal_from(replacement)
    except ValueError:
        raise InvalidValue(f"Unable to convert {replacement} (class java.lang.String) to number") from None
    match kind:
        case SchemaType.STRING:
            return replacement
        case SchemaType.INT8 | SchemaType.INT16 | SchemaType.INT32 | SchemaType.INT64:
            return whole_number_of(replacement, kind)
        case SchemaType.FLOAT32 | SchemaType.FLOAT64:
            number = float_number_of(replacement, kind)
            return Float32(number) if kind is SchemaType.FLOAT32 else number
    raise InvalidValue(f"Cannot mask value of type class {java_class(value)} with custom replacement.")


class ValueToKey:
    """A key of some of the value's fields."""

    config_def: ClassVar = ConfigDef(
        ConfigKey(
            name="fields",
            kind=LIST,
            check=non_empty_list(),
            importance=Importance.HIGH,
            doc="The value's fields that make up the key.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    )
    purpose = "copying fields from value to key"

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._fields: tuple[str, ...] = values["fields"]
        self._fills_defaults: bool = values[REPLACE_NULL_WITH_DEFAULT.name]
        self._key_schemas: dict[Schema, Schema] = {}

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if record.value_schema is None:
            found = required_dict(record.value, self.purpose)
            return record.with_(key_schema=None, key={name: found.get(name) for name in self._fields})
        value = required_struct(record.value, self.purpose)
        schema = self._key_schema(value.schema)
        key = {name: value.read(name, with_default=self._fills_defaults) for name in self._fields}
        return record.with_(key_schema=schema, key=Struct.of(schema, key), value_schema=value.schema, value=value)

    def _key_schema(self, schema: Schema) -> Schema:
        found = self._key_schemas.get(schema)
        if found is None:
            fields = [schema.field(name) for name in self._fields]
            for name, field in zip(self._fields, fields, strict=True):
                if field is None:
                    raise InvalidValue(f"Field does not exist: {name}")
            found = struct_schema(field for field in fields if field is not None)
            if len(self._key_schemas) > 1000:
                self._key_schemas.clear()
            self._key_schemas[schema] = found
        return found
