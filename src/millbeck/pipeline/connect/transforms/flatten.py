"""Flatten: structs in structs to one struct, whose names are the way to each field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from millbeck.pipeline.connect.config.definitions import STRING, ConfigDef, ConfigKey
from millbeck.pipeline.connect.errors import InvalidValue, SchemaError
from millbeck.pipeline.connect.model.record import ConnectRecord
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct, checked, java_class, type_of
from millbeck.pipeline.connect.transforms.base import SidedTransformation

_DEPTH_MAX = 200


class Flatten(SidedTransformation):
    """Arrays stay as they are; maps inside structs are refused."""

    purpose = "flattening"
    config_def: ClassVar = ConfigDef(
        ConfigKey(name="delimiter", kind=STRING, default=".", doc="What stands between the names.")
    )

    def configure(self, values: Mapping[str, Any]) -> None:
        self._delimiter: str = values["delimiter"]

    def _name(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        flat: dict[str, Any] = {}
        self._add_map(self.required_dict(value), "", flat, 0)
        return self.side.changed(record, None, flat)

    def _add_map(self, value: dict[str, Any], prefix: str, flat: dict[str, Any], depth: int) -> None:
        if depth > _DEPTH_MAX:
            raise InvalidValue(f"more than {_DEPTH_MAX} maps inside one another")
        for key, each in value.items():
            name = self._name(prefix, key)
            if isinstance(each, dict):
                self._add_map(each, name, flat, depth + 1)
                continue
            if each is not None and type_of(each) is None:
                raise InvalidValue(
                    f"Flatten transformation was passed a value of type class {java_class(each)}"
                    " which is not supported by Connect's data API"
                )
            if isinstance(each, Struct):
                raise InvalidValue(
                    f"Flatten transformation does not support class {java_class(each)}"
                    f" for record without schemas (for field {name})."
                )
            flat[name] = each

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        before = self.required_struct(value)
        updated = self.changed_schema(schema, self._updated)
        after = Struct(updated)
        self._add_struct(before, "", after)
        return self.side.changed(record, updated, after)

    def _updated(self, schema: Schema) -> Schema:
        fields: list[Field] = []
        default = schema.default if isinstance(schema.default, Struct) else None
        self._add_fields(schema, "", fields, default, is_optional=schema.optional)
        return schema.with_fields(fields)

    def _add_fields(
        self, schema: Schema, prefix: str, fields: list[Field], parent_default: Struct | None, *, is_optional: bool
    ) -> None:
        if schema.type is not SchemaType.STRUCT:
            raise InvalidValue("Cannot list fields on non-struct type")
        for field in schema.fields:
            inner = field.schema
            name = self._name(prefix, field.name)
            optional = is_optional or inner.optional
            default = inner.default
            if default is None and parent_default is not None:
                default = parent_default[field.name]
            if inner.type is SchemaType.STRUCT:
                nested = default if isinstance(default, Struct) else None
                self._add_fields(inner, name, fields, nested, is_optional=optional)
            elif inner.type is SchemaType.MAP:
                raise _unsupported(inner, name)
            else:
                fields.append(Field(name, _with_default(replace(inner, optional=optional, default=None), default)))

    def _add_struct(self, before: Struct, prefix: str, after: Struct) -> None:
        for field, given in before.items():
            name = self._name(prefix, field.name)
            if field.schema.type is not SchemaType.STRUCT:
                after[name] = field.schema.default if given is None else given
            elif given is not None:
                self._add_struct(given, name, after)


def _unsupported(schema: Schema, name: str) -> InvalidValue:
    return InvalidValue(
        f"Flatten transformation does not support {schema.type.name} for record with schemas (for field {name})."
    )


def _with_default(schema: Schema, default: Any) -> Schema:
    if default is None:
        return schema
    try:
        return replace(schema, default=checked(schema, default))
    except InvalidValue as error:
        raise SchemaError("Invalid default value") from error
