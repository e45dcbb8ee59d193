"""JsonSchemaConverter: JSON with JSON Schemas in a schema registry, under Confluent's name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from millbeck.client.schemas.model import JSON
from millbeck.client.schemas.model import Schema as RegistrySchema
from millbeck.pipeline.connect.config.checks import one_of_ignoring_case
from millbeck.pipeline.connect.config.definitions import STRING, ConfigKey, Importance
from millbeck.pipeline.connect.converters.json_schema_mapping import (
    json_schema_of,
    schema_of_json_schema,
    value_of_json,
    value_to_json,
)
from millbeck.pipeline.connect.converters.json_text import MISSING, json_text, parsed_json
from millbeck.pipeline.connect.converters.registry_settings import REGISTRY_CONFIG, RegistryAccess
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.schema import Schema, SchemaType
from millbeck.pipeline.connect.model.struct import java_class, type_of
from millbeck.pipeline.connect.model.value_parser import NULL, Parsed

_SCHEMAS_MAX = 1000


class JsonSchemaConverter:
    """JSON with JSON Schemas in a schema registry."""

    config_def: ClassVar = REGISTRY_CONFIG.joined(
        (
            ConfigKey(
                name="decimal.format",
                kind=STRING,
                default="BASE64",
                check=one_of_ignoring_case("NUMERIC", "BASE64"),
                importance=Importance.LOW,
                doc="How decimals are written: BASE64 of their digits in binary, or NUMERIC. Both are read.",
            ),
        )
    )

    def __init__(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse({"converter.type": "value", **settings})
        self._registry = RegistryAccess(values)
        self._is_numeric: bool = values["decimal.format"].upper() == "NUMERIC"
        self._written: dict[Schema, RegistrySchema] = {}
        self._read: dict[RegistrySchema, Schema] = {}

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        if schema is None and value is None:
            return None
        if schema is None:
            kind = type_of(value)
            if kind in (None, SchemaType.STRUCT, SchemaType.ARRAY, SchemaType.MAP):
                raise InvalidValue(f"a {java_class(value)} without a schema cannot be written with a JSON Schema")
            assert kind is not None
            schema = Schema(kind)
        if value is None and schema.optional and schema.default is None:
            return None
        found = value_to_json(schema, value, is_numeric=self._is_numeric)
        try:
            payload = json_text(found).encode()
        except UnicodeEncodeError:
            raise InvalidValue("a text has half a character of UTF-16, which UTF-8 cannot hold") from None
        return self._registry.framed(topic, schema.name or "", self._registered(schema), payload)

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        if stored is None:
            return NULL
        registered, payload = self._registry.unframed(stored)
        schema = self._schema(registered)
        found = parsed_json(payload)
        return Parsed(schema, value_of_json(schema, None if found is MISSING else found))

    def _registered(self, schema: Schema) -> RegistrySchema:
        found = self._written.get(schema)
        if found is None:
            text = json_text(json_schema_of(schema, is_numeric=self._is_numeric))
            found = RegistrySchema(JSON, text)
            if len(self._written) >= _SCHEMAS_MAX:
                self._written.clear()
            self._written[schema] = found
        return found

    def _schema(self, registered: RegistrySchema) -> Schema:
        found = self._read.get(registered)
        if found is None:
            if registered.kind != JSON:
                raise InvalidValue(f"the record's schema is {registered.kind}, not {JSON}: use the converter for it")
            found = schema_of_json_schema(_document(registered))
            if len(self._read) >= _SCHEMAS_MAX:
                self._read.clear()
            self._read[registered] = found
        return found


def _document(registered: RegistrySchema) -> Any:
    """The schema with what it refers to inside it."""
    root = json.loads(registered.text)
    if not isinstance(root, dict):
        return root
    names = {name: f"#/definitions/{name.replace('~', '~0').replace('/', '~1')}" for name, _ in registered.references}
    root = _with_references(root, names)
    definitions = {name: _with_references(json.loads(text), names) for name, text in registered.references}
    return {**root, "definitions": {**root.get("definitions", {}), **definitions}} if definitions else root


def _with_references(found: Any, names: Mapping[str, str]) -> Any:
    match found:
        case dict():
            return {
                name: names.get(each, each)
                if name == "$ref" and isinstance(each, str)
                else _with_references(each, names)
                for name, each in found.items()
            }
        case list():
            return [_with_references(each, names) for each in found]
    return found
