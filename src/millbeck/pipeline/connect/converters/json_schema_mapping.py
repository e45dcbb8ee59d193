"""Connect's schemas as JSON Schema (draft 7), and back, in the way of Confluent's JsonSchemaConverter."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from millbeck.pipeline.connect.errors import InvalidValue, SchemaError
from millbeck.pipeline.connect.model.logical import (
    DATE,
    DECIMAL,
    TEMPORAL,
    TIMESTAMP,
    Instant,
    decimal_of,
    instant_of,
    stored_number,
    unscaled_bytes,
)
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32, fits, float_of
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct, checked

_TYPES: Final[Mapping[SchemaType, str]] = {
    SchemaType.INT8: "integer",
    SchemaType.INT16: "integer",
    SchemaType.INT32: "integer",
    SchemaType.INT64: "integer",
    SchemaType.FLOAT32: "number",
    SchemaType.FLOAT64: "number",
    SchemaType.BOOLEAN: "boolean",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "string",
}
_PLAIN: Final = {
    "integer": SchemaType.INT64,
    "number": SchemaType.FLOAT64,
    "boolean": SchemaType.BOOLEAN,
    "string": SchemaType.STRING,
}
_CONNECT: Final = {kind.value: kind for kind in SchemaType}
_NUMBERS: Final[Mapping[SchemaType, tuple[int, Any]]] = {
    SchemaType.INT8: (8, Int8),
    SchemaType.INT16: (16, Int16),
    SchemaType.INT32: (32, Int32),
    SchemaType.INT64: (64, int),
}
_ONE_OF: Final = "io.confluent.connect.json.OneOf"
_ENUM: Final = "io.confluent.connect.json.Enum"
_DEPTH_MAX: Final = 64
_NAN: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def json_schema_of(schema: Schema, *, is_numeric: bool = False) -> dict[str, Any]:
    """The JSON Schema; with ``is_numeric`` Decimals are numbers, otherwise their bytes in base64."""
    inner = _required(schema, is_numeric)
    if not schema.optional:
        return inner
    return {"oneOf": [{"type": "null"}, inner]}


def _required(schema: Schema, is_numeric: bool) -> dict[str, Any]:
    found: dict[str, Any]
    match schema.type:
        case SchemaType.STRUCT:
            properties = {}
            for index, each in enumerate(schema.fields):
                properties[each.name] = {**json_schema_of(each.schema, is_numeric=is_numeric), "connect.index": index}
            found = {"type": "object", "properties": properties}
        case SchemaType.ARRAY if schema.value_schema is not None:
            found = {"type": "array", "items": json_schema_of(schema.value_schema, is_numeric=is_numeric)}
        case SchemaType.MAP if schema.key_schema is not None and schema.value_schema is not None:
            value = json_schema_of(schema.value_schema, is_numeric=is_numeric)
            if _has_names(schema.key_schema):
                found = {"type": "object", "connect.type": "map", "additionalProperties": value}
            else:
                key = json_schema_of(schema.key_schema, is_numeric=is_numeric)
                entry = {"type": "object", "properties": {"key": {**key, "connect.index": 0},
                                                          "value": {**value, "connect.index": 1}}}  # fmt: skip
                found = {"type": "array", "connect.type": "map", "items": entry}
        case kind:
            name = "number" if schema.name == DECIMAL and is_numeric else _TYPES[kind]
            found = {"type": name}
            if kind not in (SchemaType.BOOLEAN, SchemaType.STRING):
                found["connect.type"] = kind.value
    if schema.name is not None:
        found["title"] = schema.name
    if schema.version is not None:
        found["connect.version"] = schema.version
    if schema.doc is not None:
        found["description"] = schema.doc
    if schema.parameters:
        found["connect.parameters"] = dict(schema.parameters)
    if schema.default is not None:
        found["default"] = value_to_json(replace(schema, optional=True), schema.default, is_numeric=is_numeric)
    return found


def _has_names(key: Schema) -> bool:
    return key.type is SchemaType.STRING and not key.optional


def value_to_json(schema: Schema, value: Any, *, is_numeric: bool = False) -> Any:
    """A value as JSON has it, where bytes are in base64 and Decimals may be numbers. Raises `InvalidValue`."""
    if value is None:
        if schema.default is not None and not schema.optional:
            return value_to_json(schema, schema.default, is_numeric=is_numeric)
        if schema.optional:
            return None
        raise InvalidValue(f"null in a required {schema.type.name}")
    if schema.name == DECIMAL and isinstance(value, Decimal):
        stored = unscaled_bytes(schema, value)  # which checks the scale
        return value if is_numeric else _base64(stored)
    if schema.name in TEMPORAL and isinstance(value, Instant):
        return stored_number(schema, value)
    match schema.type:
        case SchemaType.STRUCT:
            struct = checked(schema, value)
            if schema.name == _ONE_OF:
                chosen = next(((each, found) for each, found in struct.items() if found is not None), None)
                return None if chosen is None else value_to_json(chosen[0].schema, chosen[1], is_numeric=is_numeric)
            return {
                each.name: value_to_json(each.schema, found, is_numeric=is_numeric) for each, found in struct.items()
            }
        case SchemaType.ARRAY if schema.value_schema is not None and isinstance(value, (list, tuple)):
            return [value_to_json(schema.value_schema, each, is_numeric=is_numeric) for each in value]
        case SchemaType.MAP if schema.value_schema is not None and schema.key_schema is not None:
            pairs = [
                (value_to_json(schema.key_schema, name, is_numeric=is_numeric),
                 value_to_json(schema.value_schema, each, is_numeric=is_numeric))
                for name, each in checked(schema, value).items()
            ]  # fmt: skip
            return (
                dict(pairs) if _has_names(schema.key_schema) else [{"key": key, "value": each} for key, each in pairs]
            )
        case SchemaType.BYTES:
            return _base64(checked(schema, value))
    found = checked(schema, value)
    if isinstance(found, float) and not math.isfinite(found):
        return "NaN" if math.isnan(found) else "Infinity" if found > 0 else "-Infinity"
    return found


def _base64(stored: bytes) -> str:
    return base64.b64encode(stored).decode()


def schema_of_json_schema(document: Any) -> Schema:
    """The Connect schema of a JSON Schema. Raises `SchemaError`."""
    return _Reading(document).schema(document, 0)


class _Reading:
    def __init__(self, root: Any) -> None:
        self._root = root

    def schema(self, found: Any, depth: int) -> Schema:
        if depth > _DEPTH_MAX:
            raise SchemaError(f"the schema is nested deeper than {_DEPTH_MAX}, or contains itself")
        if not isinstance(found, dict):
            raise SchemaError(f"{str(found)[:100]} has no type of Connect")
        if "$ref" in found:
            return self.schema(self._referred(str(found["$ref"])), depth + 1)
        for word in ("oneOf", "anyOf"):
            if isinstance(found.get(word), list):
                return self._one_of(found[word], depth)
        if isinstance(found.get("allOf"), list):
            merged: dict[str, Any] = {name: each for name, each in found.items() if name != "allOf"}
            for each in found["allOf"]:
                part = self._referred(str(each["$ref"])) if "$ref" in each else each
                properties = {**merged.get("properties", {}), **part.get("properties", {})}
                required = [*merged.get("required", ()), *part.get("required", ())]
                merged = {**part, **merged, "properties": properties, "required": required}
            return self.schema(merged, depth + 1)
        kind = found.get("type")
        if isinstance(kind, list):
            others = [each for each in kind if each != "null"]
            made = self._one_of([{**found, "type": each} for each in others], depth)
            return replace(made, optional=made.optional or len(others) < len(kind))
        return self._with_metadata(self._of_kind(kind, found, depth), found)

    def _referred(self, reference: str) -> Any:
        place = self._root
        if not reference.startswith("#"):
            raise SchemaError(f"the reference {reference[:200]} leaves the schema")
        for part in reference[1:].strip("/").split("/") if reference not in ("#", "#/") else ():
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(place, dict) or name not in place:
                raise SchemaError(f"the reference {reference[:200]} leads nowhere")
            place = place[name]
        return place

    def _of_kind(self, kind: Any, found: dict[str, Any], depth: int) -> Schema:
        declared = found.get("connect.type")
        if "enum" in found and kind in (None, "string"):
            symbols = [str(each) for each in found["enum"] if each is not None]
            parameters = {_ENUM: str(found.get("title", "")), **{f"{_ENUM}.{each}": each for each in symbols}}
            return Schema(SchemaType.STRING, parameters=parameters, optional=None in found["enum"])
        if kind == "object" or (kind is None and "properties" in found):
            more = found.get("additionalProperties")
            if declared == "map" or ("properties" not in found and isinstance(more, dict)):
                value = (
                    self.schema(more, depth + 1) if isinstance(more, dict) else Schema(SchemaType.STRING, optional=True)
                )
                return Schema(SchemaType.MAP, key_schema=Schema(SchemaType.STRING), value_schema=value)
            return self._struct(found, depth)
        if kind == "array":
            items = self.schema(found.get("items"), depth + 1)
            if declared == "map" and [each.name for each in items.fields] == ["key", "value"]:
                key, value = (each.schema for each in items.fields)
                return Schema(SchemaType.MAP, key_schema=key, value_schema=value)
            return Schema(SchemaType.ARRAY, value_schema=items)
        if kind in _PLAIN:
            return Schema(_CONNECT.get(str(declared), _PLAIN[kind]))
        raise SchemaError(f"{str(found)[:200]} has no type of Connect")

    def _struct(self, found: dict[str, Any], depth: int) -> Schema:
        properties = found.get("properties") or {}
        required = found.get("required")
        order = sorted(properties, key=lambda name: _index(properties[name], len(properties)))
        fields = []
        for name in order:
            schema = self.schema(properties[name], depth + 1)
            is_ours = isinstance(properties[name], dict) and "connect.index" in properties[name]
            if not is_ours and name not in (required or ()):
                schema = replace(schema, optional=True)
            fields.append(Field(str(name), schema))
        return Schema(SchemaType.STRUCT, fields=tuple(fields))

    def _one_of(self, branches: list[Any], depth: int) -> Schema:
        others = [each for each in branches if not (isinstance(each, dict) and each.get("type") == "null")]
        optional = len(others) < len(branches)
        if len(others) == 1:
            return replace(self.schema(others[0], depth + 1), optional=optional)
        fields = tuple(
            Field(f"{_ONE_OF}.field.{index}", replace(self.schema(each, depth + 1), optional=True))
            for index, each in enumerate(others)
        )
        return Schema(SchemaType.STRUCT, optional=optional, name=_ONE_OF, fields=fields)

    def _with_metadata(self, schema: Schema, found: dict[str, Any]) -> Schema:
        given = found.get("connect.parameters")
        parameters = dict(schema.parameters or {}) | (given if isinstance(given, dict) else {})
        made = replace(
            schema,
            name=found.get("title", schema.name),
            version=found.get("connect.version"),
            doc=found.get("description"),
            parameters={str(name): str(text) for name, text in parameters.items()} or None,
        )
        if found.get("default") is not None:
            made = replace(made, default=value_of_json(replace(made, optional=True), found["default"]))
        return made


def _index(found: Any, last: int) -> int:
    index = found.get("connect.index") if isinstance(found, dict) else None
    return index if isinstance(index, int) else last


def value_of_json(schema: Schema, found: Any) -> Any:
    """A value of parsed JSON, whose fractions are Decimals. Raises `InvalidValue`."""
    if schema.name == _ONE_OF and schema.type is SchemaType.STRUCT:
        return _chosen(schema, found)
    if found is None:
        if schema.default is not None and not schema.optional:
            return schema.default
        if schema.optional:
            return None
        raise InvalidValue(f"null in a required {schema.type.name}")
    if schema.name == DECIMAL:
        if isinstance(found, (int, Decimal)) and not isinstance(found, bool):
            return Decimal(found)
        return decimal_of(schema, _bytes(found))
    if schema.name in TEMPORAL:
        bits = 64 if schema.name == TIMESTAMP else 32
        if not isinstance(found, int) or isinstance(found, bool) or not fits(found, bits):
            raise InvalidValue(f"{str(found)[:100]} is no {'day' if schema.name == DATE else 'moment'}")
        return instant_of(schema, found)
    match schema.type:
        case SchemaType.STRUCT if isinstance(found, dict):
            made = Struct(schema)
            made.values = [value_of_json(each.schema, found.get(each.name)) for each in schema.fields]
            return made
        case SchemaType.ARRAY if isinstance(found, list) and schema.value_schema is not None:
            return [value_of_json(schema.value_schema, each) for each in found]
        case SchemaType.MAP if schema.key_schema is not None and schema.value_schema is not None:
            return _map(schema.key_schema, schema.value_schema, found)
        case SchemaType.BYTES:
            return _bytes(found)
        case SchemaType.FLOAT32 | SchemaType.FLOAT64:
            return _float(schema, found)
        case SchemaType.STRING if isinstance(found, str):
            return found
        case SchemaType.BOOLEAN if isinstance(found, bool):
            return found
    if schema.type in _NUMBERS and isinstance(found, (int, Decimal)) and not isinstance(found, bool):
        bits, number = _NUMBERS[schema.type]
        if found == int(found) and fits(int(found), bits):
            return number(int(found))
    raise InvalidValue(f"{str(found)[:100]} is no {schema.type.name}")


def _map(key: Schema, element: Schema, found: Any) -> dict[Any, Any]:
    if isinstance(found, dict):
        return {value_of_json(key, name): value_of_json(element, each) for name, each in found.items()}
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InvalidValue(f"{str(found)[:100]} is no MAP")
    return {value_of_json(key, each.get("key")): value_of_json(element, each.get("value")) for each in found}


def _float(schema: Schema, found: Any) -> float:
    if isinstance(found, str) and found in _NAN:
        number = _NAN[found]
    elif isinstance(found, (int, Decimal)) and not isinstance(found, bool):
        number = float_of(Decimal(found))
    else:
        raise InvalidValue(f"{str(found)[:100]} is no {schema.type.name}")
    return Float32(number) if schema.type is SchemaType.FLOAT32 else number


def _bytes(found: Any) -> bytes:
    if not isinstance(found, str):
        raise InvalidValue(f"{str(found)[:100]} is not base64")
    try:
        return base64.b64decode(found, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidValue("bytes are not in base64") from None


def _chosen(schema: Schema, found: Any) -> Struct | None:
    """The first branch that the value fits."""
    if found is None:
        if schema.optional:
            return None
        raise InvalidValue("null in a choice that has no null")
    for place, each in enumerate(schema.fields):
        try:
            value = value_of_json(each.schema, found)
        except InvalidValue:
            continue
        made = Struct(schema)
        made.values[place] = value
        return made
    raise InvalidValue(f"no branch has a value like {str(found)[:100]}")
