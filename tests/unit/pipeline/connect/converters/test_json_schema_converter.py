"""JsonSchemaConverter over a registry in memory: schemas and values come back as they were."""

from __future__ import annotations

import json
import math
import struct
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("jsonschema_rs")

from millbeck.client.schemas.json_schema import JsonSchemaSerde
from millbeck.pipeline.connect.converters.json_schema_converter import JsonSchemaConverter
from millbeck.pipeline.connect.converters.json_schema_mapping import json_schema_of, schema_of_json_schema
from millbeck.pipeline.connect.errors import InvalidValue, SchemaError
from millbeck.pipeline.connect.model.logical import decimal_schema
from millbeck.pipeline.connect.model.schema import INT64_SCHEMA, Field, Schema, SchemaType, struct_schema
from millbeck.pipeline.connect.model.struct import Struct
from tests.unit.client.schemas.registry_in_memory import RegistryInMemory
from tests.unit.pipeline.connect.converters.round_trips import CASES

URL = {"schema.registry.url": "http://registry:8081"}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> RegistryInMemory:
    return RegistryInMemory(monkeypatch)


def converter(**settings: str) -> JsonSchemaConverter:
    return JsonSchemaConverter(URL | {name.replace("_", "."): text for name, text in settings.items()})


@pytest.mark.parametrize("decimal_format", ["BASE64", "NUMERIC"])
@pytest.mark.parametrize(("schema", "values"), CASES.values(), ids=CASES.keys())
def test_schemas_and_values_come_back(
    registry: RegistryInMemory, schema: Schema, values: list[Any], decimal_format: str
) -> None:
    outer = struct_schema([Field("f", schema), Field("again", schema)])
    made = converter(decimal_format=decimal_format)
    for value in values:
        whole = Struct.of(outer, {"f": value, "again": value})
        for topic, wanted_schema, wanted in (("plain", schema, value), ("outer", outer, whole)):
            stored = made.to_bytes(topic, wanted_schema, wanted)
            if wanted is None and wanted_schema.default is None:
                assert stored is None
                continue
            found = converter().from_bytes(topic, stored)
            assert found.schema == wanted_schema
            assert found.value == wanted
            assert type(found.value) is type(wanted)


def test_the_schema_is_confluents(registry: RegistryInMemory) -> None:
    schema = struct_schema(
        [
            Field("id", INT64_SCHEMA),
            Field("level", Schema(SchemaType.INT8, True)),
            Field("price", decimal_schema(2, optional=True)),
        ],
        basis=Schema(SchemaType.STRUCT, name="shop.Order"),
    )
    assert json_schema_of(schema) == {
        "type": "object",
        "title": "shop.Order",
        "properties": {
            "id": {"type": "integer", "connect.type": "int64", "connect.index": 0},
            "level": {"oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int8"}], "connect.index": 1},
            "price": {
                "connect.index": 2,
                "oneOf": [
                    {"type": "null"},
                    {
                        "type": "string",
                        "title": "org.apache.kafka.connect.data.Decimal",
                        "connect.type": "bytes",
                        "connect.version": 1,
                        "connect.parameters": {"scale": "2"},
                    },
                ],
            },
        },
    }
    stored = converter().to_bytes("orders", schema, Struct.of(schema, {"id": 1, "price": Decimal("1.50")}))
    assert stored is not None
    assert json.loads(stored[5:]) == {"id": 1, "level": None, "price": "AJY="}
    # Other clients accept the record by its schema.
    assert JsonSchemaSerde(URL).deserialize("orders", stored, [])["id"] == 1


def test_schemas_of_others_are_read(registry: RegistryInMemory) -> None:
    registry.register(
        "city", {"type": "object", "title": "City", "properties": {"zip": {"type": "string"}}}, schemaType="JSON"
    )
    document = {
        "type": "object",
        "title": "Order",
        "required": ["id"],
        "definitions": {"money": {"type": "number"}},
        "properties": {
            "id": {"type": "integer"},
            "total": {"$ref": "#/definitions/money"},
            "state": {"enum": ["NEW", "PAID"]},
            "note": {"type": ["null", "string"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "more": {"type": "object", "additionalProperties": {"type": "integer"}},
            "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
            "all": {"allOf": [{"type": "object", "properties": {"a": {"type": "boolean"}}},
                              {"properties": {"b": {"type": "boolean"}}, "required": ["b"]}]},
            "city": {"$ref": "city.json"},
        },
    }  # fmt: skip
    schema_id = registry.register(
        "orders-value", document, schemaType="JSON", references=[{"name": "city.json", "subject": "city", "version": 1}]
    )
    value = {
        "id": 5, "total": 1.25, "state": "PAID", "note": None, "tags": ["a"], "more": {"k": 1}, "either": "x",
        "all": {"b": True}, "city": {"zip": "1"},
    }  # fmt: skip
    found = converter().from_bytes("orders", struct.pack(">bI", 0, schema_id) + json.dumps(value).encode())
    row = found.value
    assert (row["id"], row["total"], row["state"], row["note"], row["tags"], row["more"]) == (
        5, 1.25, "PAID", None, ["a"], {"k": 1})  # fmt: skip
    assert [each for _, each in row["either"].items()] == [None, "x"]
    assert (row["all"]["a"], row["all"]["b"], row["city"]["zip"]) == (None, True, "1")
    assert found.schema is not None
    assert [field.name for field in found.schema.fields if not field.schema.optional] == ["id"]


def test_what_cannot_be_read_says_why(registry: RegistryInMemory) -> None:
    schema_id = registry.register("t-value", {"type": "integer", "connect.type": "int8"}, schemaType="JSON")
    for text in ("300", "1.5", '"1"', "true", "null"):
        with pytest.raises(InvalidValue, match="INT8"):
            converter().from_bytes("t", struct.pack(">bI", 0, schema_id) + text.encode())
    for document in ({}, {"type": "array"}, {"$ref": "#/nowhere"}, {"$ref": "#"}, {"$ref": "http://else/where"}):
        with pytest.raises(SchemaError):
            schema_of_json_schema(document)
    not_a_number = Schema(SchemaType.FLOAT64)
    assert math.isnan(converter().from_bytes("f", converter().to_bytes("f", not_a_number, math.nan)).value)
    avro_id = registry.register("a-value", {"type": "string"})
    with pytest.raises(InvalidValue, match="AVRO, not JSON"):
        converter().from_bytes("a", struct.pack(">bI", 0, avro_id) + b"{}")
