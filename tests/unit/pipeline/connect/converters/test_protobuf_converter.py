"""ProtobufConverter over a registry in memory: schemas and values come back as they were, nulls included."""

from __future__ import annotations

import struct
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("google.protobuf")

from millbeck.client.schemas.model import PROTOBUF
from millbeck.client.schemas.model import Schema as RegistrySchema
from millbeck.client.schemas.protobuf import ProtobufSerde, class_at
from millbeck.pipeline.connect.converters.protobuf_converter import ProtobufConverter
from millbeck.pipeline.connect.converters.protobuf_mapping import proto_of
from millbeck.pipeline.connect.errors import InvalidValue, SchemaError
from millbeck.pipeline.connect.model.numbers import Int32
from millbeck.pipeline.connect.model.schema import (
    INT64_SCHEMA,
    STRING_SCHEMA,
    Field,
    Schema,
    SchemaType,
    array_schema,
    map_schema,
    struct_schema,
)
from millbeck.pipeline.connect.model.struct import Struct
from tests.unit.client.schemas.registry_in_memory import RegistryInMemory
from tests.unit.pipeline.connect.converters.round_trips import CASES, NAMED

URL = {"schema.registry.url": "http://registry:8081"}
LIST = array_schema(INT64_SCHEMA)
WORDS = Schema(SchemaType.INT32, doc='naïve 🚀 "quoted"\n\\', parameters={"ä": "ö\t"})
MORE: dict[str, tuple[Schema, list[Any]]] = {
    "words of any script": (WORDS, [Int32(1)]),
    "list that may be null": (array_schema(STRING_SCHEMA, optional=True), [None, [], ["a"]]),
    "list of lists": (array_schema(LIST), [[], [[]], [[1], [2, 3]]]),
    "map of lists": (map_schema(STRING_SCHEMA, LIST), [{}, {"a": [1]}]),
    "map of structs": (map_schema(INT64_SCHEMA, NAMED), [{5: Struct.of(NAMED, {"x": 1})}]),
    "list of structs": (array_schema(NAMED), [[Struct.of(NAMED, {"x": 1})]]),
}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> RegistryInMemory:
    return RegistryInMemory(monkeypatch)


def converter(**settings: str) -> ProtobufConverter:
    return ProtobufConverter(URL | settings)


@pytest.mark.parametrize(("schema", "values"), [*CASES.values(), *MORE.values()], ids=[*CASES, *MORE])
def test_schemas_and_values_come_back(registry: RegistryInMemory, schema: Schema, values: list[Any]) -> None:
    outer = struct_schema(
        [Field("f", schema), Field("again", schema)], basis=Schema(SchemaType.STRUCT, name="shop.Outer")
    )
    made = converter()
    for value in values:
        whole = Struct.of(outer, {"f": value, "again": value})
        stored = made.to_bytes("outer", outer, whole)
        found = converter().from_bytes("outer", stored)
        assert found.schema == outer
        if value is None and schema.default is not None:
            whole = Struct.of(outer, {"f": schema.default, "again": schema.default})
        assert found.value == whole
        assert [type(each) for _, each in found.value.items()] == [type(each) for _, each in whole.items()]
        if value is None:
            assert made.to_bytes("plain", schema, None) is None
        else:
            plain = converter().from_bytes("plain", made.to_bytes("plain", schema, value))
            assert (plain.schema, plain.value) == (schema, value)


def test_the_proto_can_be_read_by_people_and_others(registry: RegistryInMemory) -> None:
    schema = struct_schema(
        [Field("id", INT64_SCHEMA), Field("level", Schema(SchemaType.INT8, True))],
        basis=Schema(SchemaType.STRUCT, name="shop.Order"),
    )
    text = proto_of(schema).text
    assert "package shop;" in text
    assert "message Order {" in text
    assert "\nint64 id = 1;\n" in text
    assert "\noptional int32 level = 2 [(confluent.field_meta)" in text
    stored = converter().to_bytes("orders", schema, Struct.of(schema, {"id": 7}))
    assert stored is not None
    message: Any = ProtobufSerde(URL).deserialize("orders", stored, [])
    assert (message.id, message.HasField("level")) == (7, False)


def test_messages_of_others_are_read(registry: RegistryInMemory) -> None:
    text = """syntax = "proto3";
        package shop;
        import "google/protobuf/timestamp.proto";
        message Skipped { }
        message Order {
          enum State { NEW = 0; PAID = 1; }
          message Line { string sku = 1; uint32 count = 2; }
          int32 id = 1;
          State state = 2;
          repeated Line lines = 3;
          google.protobuf.Timestamp at = 4;
          oneof either { string name = 5; int64 number = 6; }
          map<string, double> prices = 7;
          uint64 large = 8;
        }"""
    schema_id = registry.register("orders-value", text, schemaType="PROTOBUF")
    made = class_at(RegistrySchema(PROTOBUF, text), (1,))
    message: Any = made(id=3, state=1, lines=[{"sku": "a", "count": 2**32 - 1}], number=9, prices={"x": 0.5}, large=5)
    message.at.seconds = -1
    head = struct.pack(">bI", 0, schema_id) + b"\x02\x02"
    found = converter().from_bytes("orders", head + message.SerializeToString())
    row = found.value
    assert found.schema is not None
    assert found.schema.name == "shop.Order"
    assert (row["id"], row["state"], row["at"].milliseconds, row["name"], row["number"]) == (3, "PAID", -1000, None, 9)
    assert (row["lines"][0]["sku"], row["lines"][0]["count"], row["prices"]) == ("a", 2**32 - 1, {"x": 0.5})
    message.large = 2**64 - 1
    with pytest.raises(InvalidValue, match="more than a number of 64 bits"):
        converter().from_bytes("orders", head + message.SerializeToString())
    with pytest.raises(InvalidValue, match="does not match its schema"):
        converter().from_bytes("orders", head + b"\xff")


def test_what_cannot_be_written_says_why(registry: RegistryInMemory) -> None:
    odd = struct_schema([Field("my field", INT64_SCHEMA)])
    with pytest.raises(SchemaError, match="no name of Protobuf"):
        converter().to_bytes("t", odd, Struct.of(odd, {"my field": 1}))
    with pytest.raises(InvalidValue, match="without a schema"):
        converter().to_bytes("t", None, {"a": 1})
    assert converter().to_bytes("t", None, None) is None
    node = 'syntax = "proto3"; message Node { Node next = 1; }'
    schema_id = registry.register("n-value", node, schemaType="PROTOBUF")
    with pytest.raises(SchemaError, match="contains itself"):
        converter().from_bytes("n", struct.pack(">bI", 0, schema_id) + b"\0")
