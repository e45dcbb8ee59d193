"""Schemas in the JSON that JsonConverter puts beside each value: ``{"type": "int32", "optional": false}``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from millbeck.pipeline.connect.errors import InvalidValue, SchemaError
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType, struct_schema
from millbeck.pipeline.connect.model.struct import checked

_NAMES: Final[Mapping[SchemaType, str]] = {
    **{kind: kind.value for kind in SchemaType},
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
}
_TYPES: Final = {name: kind for kind, name in _NAMES.items()}
_DEPTH_MAX: Final = 200

DefaultReader = Callable[[Schema, Any], Any]
"""The value of a default's JSON under a schema."""


def schema_as_json(schema: Schema, default_as_json: Callable[[Schema, Any], Any]) -> dict[str, Any]:
    """The JSON object of a schema, its members in Kafka's order."""
    found: dict[str, Any] = {"type": _NAMES[schema.type]}
    if schema.type is SchemaType.ARRAY:
        found["items"] = _part(schema.value_schema, default_as_json)
    elif schema.type is SchemaType.MAP:
        found["keys"] = _part(schema.key_schema, default_as_json)
        found["values"] = _part(schema.value_schema, default_as_json)
    elif schema.type is SchemaType.STRUCT:
        fields = schema.fields
        found["fields"] = [schema_as_json(each.schema, default_as_json) | {"field": each.name} for each in fields]
    found["optional"] = schema.optional
    if schema.name is not None:
        found["name"] = schema.name
    if schema.version is not None:
        found["version"] = schema.version
    if schema.doc is not None:
        found["doc"] = schema.doc
    if schema.parameters is not None:
        found["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        found["default"] = default_as_json(schema, schema.default)
    return found


def _part(schema: Schema | None, default_as_json: Callable[[Schema, Any], Any]) -> dict[str, Any] | None:
    return None if schema is None else schema_as_json(schema, default_as_json)


def schema_from_json(found: Any, read_default: DefaultReader, depth: int = 0) -> Schema | None:
    """The schema of a JSON object; None for null. Raises `InvalidValue`."""
    if found is None:
        return None
    if depth > _DEPTH_MAX:
        raise InvalidValue(f"a schema has more than {_DEPTH_MAX} levels")
    name = found.get("type") if isinstance(found, dict) else None
    if not isinstance(name, str):
        raise InvalidValue("Schema must contain 'type' field")
    kind = _TYPES.get(name)
    if kind is None:
        raise InvalidValue(f"Unknown schema type: {name}")
    schema = Schema(
        kind,
        optional=found.get("optional") is True,
        name=_text(found.get("name")),
        version=_whole(found.get("version")),
        doc=_text(found.get("doc")),
        parameters=_parameters(found.get("parameters")),
        **_parts(kind, found, read_default, depth + 1),
    )
    if "default" not in found:
        return schema
    return _with_default(schema, read_default(schema, found["default"]))


def _with_default(schema: Schema, value: Any) -> Schema:
    try:
        return Schema(**{**_attributes(schema), "default": checked(schema, value)})
    except InvalidValue as error:
        raise SchemaError("Invalid default value") from error


def _attributes(schema: Schema) -> dict[str, Any]:
    return {name: getattr(schema, name) for name in Schema.__dataclass_fields__}


def _parts(kind: SchemaType, found: dict[str, Any], read_default: DefaultReader, depth: int) -> dict[str, Any]:
    if kind is SchemaType.ARRAY:
        element = schema_from_json(found.get("items"), read_default, depth)
        if element is None:
            raise InvalidValue("Array schema did not specify the element type")
        return {"value_schema": element}
    if kind is SchemaType.MAP:
        for member, word in (("keys", "key"), ("values", "value")):
            if member not in found:
                raise InvalidValue(f"Map schema did not specify the {word} type")
        key = schema_from_json(found["keys"], read_default, depth)
        value = schema_from_json(found["values"], read_default, depth)
        if key is None or value is None:
            raise SchemaError(f"{'keySchema' if key is None else 'valueSchema'} cannot be null.")
        return {"key_schema": key, "value_schema": value}
    if kind is SchemaType.STRUCT:
        return {"fields": struct_schema(_fields(found.get("fields"), read_default, depth)).fields}
    return {}


def _fields(listed: Any, read_default: DefaultReader, depth: int) -> list[Field]:
    if not isinstance(listed, list):
        raise InvalidValue('Struct schema\'s "fields" argument is not an array.')
    fields: list[Field] = []
    for each in listed:
        name = each.get("field") if isinstance(each, dict) else None
        if not isinstance(name, str):
            raise InvalidValue("Struct schema's field name not specified properly")
        schema = schema_from_json(each, read_default, depth)
        assert schema is not None
        fields.append(Field(name, schema))
    return fields


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None


def _whole(found: Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _parameters(found: Any) -> dict[str, str] | None:
    if not isinstance(found, dict) or not found:
        return None
    if not all(isinstance(value, str) for value in found.values()):
        raise InvalidValue("Schema parameters must have string values.")
    return found
