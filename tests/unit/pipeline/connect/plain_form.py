"""Schemas, values and records as plain JSON that names every type, in which questions to Kafka's classes are put."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from millbeck.pipeline.connect.model.logical import Instant
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32, float_text
from millbeck.pipeline.connect.model.record import ConnectHeader, ConnectRecord, SinkRecord, SourceRecord
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct, type_of

_NUMBERS: dict[str, Any] = {"int8": Int8, "int16": Int16, "int32": Int32, "int64": int, "boolean": bool, "string": str}


def schema_from(found: dict[str, Any] | None) -> Schema | None:
    if found is None:
        return None
    made = Schema(
        SchemaType(found["type"]),
        optional=found.get("optional", False),
        name=found.get("name"),
        version=found.get("version"),
        doc=found.get("doc"),
        parameters=found.get("parameters"),
        fields=tuple(Field(name, _schema(each)) for name, each in found.get("fields", ())),
        key_schema=schema_from(found.get("key")),
        value_schema=schema_from(found.get("element")),
    )
    if "default" not in found:
        return made
    attributes = {name: getattr(made, name) for name in Schema.__dataclass_fields__}
    return Schema(**{**attributes, "default": value_from(made, found["default"])})


def _schema(found: dict[str, Any]) -> Schema:
    made = schema_from(found)
    assert made is not None
    return made


def schema_form(schema: Schema | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    found: dict[str, Any] = {"type": schema.type.value}
    if schema.type is SchemaType.MAP:
        found["key"] = schema_form(schema.key_schema)
    if schema.type in (SchemaType.MAP, SchemaType.ARRAY):
        found["element"] = schema_form(schema.value_schema)
    if schema.type is SchemaType.STRUCT:
        found["fields"] = [[field.name, schema_form(field.schema)] for field in schema.fields]
    if schema.optional:
        found["optional"] = True
    for name in ("name", "version", "doc", "parameters"):
        if getattr(schema, name) is not None:
            found[name] = getattr(schema, name)
    if schema.default is not None:
        found["default"] = value_form(schema, schema.default)
    return found


def value_from(schema: Schema | None, found: dict[str, Any] | None) -> Any:
    if found is None:
        return None
    ((kind, given),) = found.items()
    element = None if schema is None else schema.value_schema
    match kind:
        case "float32":
            return Float32(float(given))
        case "float64":
            return float(given)
        case "bytes":
            return bytes.fromhex(given)
        case "decimal":
            return Decimal(given)
        case "instant":
            return Instant(given)
        case "array":
            return [value_from(element, each) for each in given]
        case "map":
            key = None if schema is None else schema.key_schema
            return {value_from(key, name): value_from(element, each) for name, each in given}
        case "struct":
            assert schema is not None
            struct = Struct(schema)
            for name, each in given.items():
                struct[name] = value_from(schema.fields[schema.by_name[name]].schema, each)
            return struct
    return _NUMBERS[kind](given)


def value_form(schema: Schema | None, value: Any) -> dict[str, Any] | None:
    """Maps are in the order of their keys' texts: Kafka's have none."""
    if value is None:
        return None
    element = None if schema is None else schema.value_schema
    match value:
        case Instant():
            return {"instant": value.milliseconds}
        case Decimal():
            return {"decimal": str(value)}
        case list():
            return {"array": [value_form(element, each) for each in value]}
        case dict():
            key = None if schema is None else schema.key_schema
            return {
                "map": in_order([[value_form(key, name), value_form(element, each)] for name, each in value.items()])
            }
        case Struct():
            return {"struct": {field.name: value_form(field.schema, each) for field, each in value.items()}}
        case bytes():
            return {"bytes": value.hex()}
    kind = type_of(value) if schema is None else schema.type
    assert kind is not None
    if isinstance(value, float):
        return {kind.value: float_text(Float32(value) if kind is SchemaType.FLOAT32 else value)}
    return {kind.value: value}


def in_order(pairs: list[Any]) -> list[Any]:
    return sorted(pairs, key=repr)


def record_from(found: dict[str, Any]) -> ConnectRecord:
    key_schema, value_schema = schema_from(found["key_schema"]), schema_from(found["value_schema"])
    headers = []
    for header in found["headers"]:
        schema = schema_from(header["schema"])
        headers.append(ConnectHeader(header["key"], schema, value_from(schema, header["value"])))
    given: dict[str, Any] = {
        "topic": found["topic"],
        "partition": found["partition"],
        "key_schema": key_schema,
        "key": value_from(key_schema, found["key"]),
        "value_schema": value_schema,
        "value": value_from(value_schema, found["value"]),
        "timestamp": found["timestamp"],
        "headers": tuple(headers),
    }
    if found["offset"] is None:
        return SourceRecord(**given)
    return SinkRecord(offset=found["offset"], **given)


def record_form(record: ConnectRecord) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "key_schema": schema_form(record.key_schema),
        "key": value_form(record.key_schema, record.key),
        "value_schema": schema_form(record.value_schema),
        "value": value_form(record.value_schema, record.value),
        "timestamp": record.timestamp,
        "headers": [
            {"key": each.key, "schema": schema_form(each.schema), "value": value_form(each.schema, each.value)}
            for each in record.headers
        ],
        "offset": record.offset if isinstance(record, SinkRecord) else None,
    }
