"""AvroConverter over a registry in memory: schemas and values come back as they were."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("fastavro")

import fastavro

from millbeck.pipeline.connect.converters.avro_converter import AvroConverter
from millbeck.pipeline.connect.converters.avro_mapping import avro_of, schema_of_avro
from millbeck.pipeline.connect.errors import InvalidValue, RetriableError, SchemaError
from millbeck.pipeline.connect.model.logical import (
    decimal_schema,
)
from millbeck.pipeline.connect.model.schema import (
    INT64_SCHEMA,
    Field,
    Schema,
    SchemaType,
    struct_schema,
)
from millbeck.pipeline.connect.model.struct import Struct
from tests.unit.client.schemas.registry_in_memory import RegistryInMemory
from tests.unit.pipeline.connect.converters.round_trips import CASES, NAMED

URL = {"schema.registry.url": "http://registry:8081"}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> RegistryInMemory:
    return RegistryInMemory(monkeypatch)


def converter(**settings: str) -> AvroConverter:
    return AvroConverter(URL | {name.replace("_", "."): text for name, text in settings.items()})


@pytest.mark.parametrize(("schema", "values"), CASES.values(), ids=CASES.keys())
def test_schemas_and_values_come_back(registry: RegistryInMemory, schema: Schema, values: list[Any]) -> None:
    outer = struct_schema([Field("f", schema), Field("again", schema)])
    made = converter()
    for value in values:
        whole = Struct.of(outer, {"f": value, "again": value})
        for topic, wanted_schema, wanted in (("plain", schema, value), ("outer", outer, whole)):
            stored = made.to_bytes(topic, wanted_schema, wanted)
            found = converter().from_bytes(topic, stored)
            if wanted is None and wanted_schema.default is None:
                assert stored is None
                continue
            assert found.schema == wanted_schema
            assert found.value == wanted
            assert type(found.value) is type(wanted)


def test_the_schema_is_confluents(registry: RegistryInMemory) -> None:
    schema = struct_schema(
        [
            Field("id", INT64_SCHEMA),
            Field("level", Schema(SchemaType.INT8, True)),
            Field("price", decimal_schema(2, optional=True)),
            Field("word", Schema(SchemaType.STRING, default="x")),
        ],
        basis=Schema(SchemaType.STRUCT, name="shop.Order"),
    )
    assert avro_of(schema) == {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "level", "type": ["null", {"type": "int", "connect.type": "int8"}], "default": None},
            {
                "name": "price",
                "type": [
                    "null",
                    {
                        "type": "bytes",
                        "scale": 2,
                        "precision": 64,
                        "logicalType": "decimal",
                        "connect.version": 1,
                        "connect.parameters": {"scale": "2"},
                        "connect.name": "org.apache.kafka.connect.data.Decimal",
                    },
                ],
                "default": None,
            },
            {"name": "word", "type": {"type": "string", "connect.default": "x"}, "default": "x"},
        ],
        "connect.name": "shop.Order",
    }
    value = Struct.of(schema, {"id": 1, "price": Decimal("1.50"), "word": "w"})
    stored = converter().to_bytes("orders", schema, value)
    assert stored is not None
    magic, schema_id = struct.unpack(">bI", stored[:5])
    assert magic == 0
    text = registry("GET", "schemas", "ids", str(schema_id))["schema"]
    assert json.loads(text)["name"] == "Order"
    # A reader that knows logical types gets the decimal.
    from io import BytesIO

    read = fastavro.schemaless_reader(BytesIO(stored[5:]), fastavro.parse_schema(json.loads(text)))
    assert read == {"id": 1, "level": None, "price": Decimal("1.50"), "word": "w"}


def test_schemas_of_others_are_read(registry: RegistryInMemory) -> None:
    avro = {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "doc": "An order",
        "fields": [
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
            {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
            {"name": "either", "type": ["null", "long", "string", {"type": "record", "name": "In", "fields": []}]},
            {"name": "again", "type": "State", "default": "NEW"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ],
    }
    schema_id = registry.register("orders-value", avro)
    parsed = fastavro.parse_schema(json.loads(json.dumps(avro)))
    from io import BytesIO

    for either, field in ((5, "long"), ("x", "string"), (None, None), (("shop.In", {}), "shop.In")):
        stream = BytesIO()
        row: dict[str, Any] = {"state": "PAID", "hash": b"ab", "either": either, "again": "NEW", "at": 10**18}
        fastavro.schemaless_writer(stream, parsed, row)
        found = converter().from_bytes("orders", struct.pack(">bI", 0, schema_id) + stream.getvalue())
        assert (found.value["state"], found.value["hash"], found.value["at"]) == ("PAID", b"ab", 10**18)
        chosen = found.value["either"]
        if field is None:
            assert chosen is None
        else:
            assert [each.name for each, value in chosen.items() if value is not None] == [field]
        assert found.schema is not None
        assert found.schema.name == "shop.Order"
        assert found.schema.fields[0].schema.parameters == {
            "io.confluent.connect.avro.Enum": "shop.State",
            "io.confluent.connect.avro.Enum.NEW": "NEW",
            "io.confluent.connect.avro.Enum.PAID": "PAID",
        }


def test_what_cannot_be_written_or_read_says_why(registry: RegistryInMemory) -> None:
    odd = struct_schema([Field("my field", INT64_SCHEMA)])
    value = Struct.of(odd, {"my field": 1})
    with pytest.raises(SchemaError, match=r"scrub\.invalid\.names=true"):
        converter().to_bytes("orders", odd, value)
    scrubbing = converter(scrub_invalid_names="true")
    found = scrubbing.from_bytes("orders", scrubbing.to_bytes("orders", odd, value))
    assert found.value["my_field"] == 1
    with pytest.raises(InvalidValue, match="without a schema"):
        converter().to_bytes("orders", None, {"a": 1})
    with pytest.raises(InvalidValue, match="too few for the id"):
        converter().from_bytes("orders", b"\0\0")
    with pytest.raises(InvalidValue, match="schema 77 is not in"):
        converter().from_bytes("orders", struct.pack(">bI", 0, 77) + b"x")
    with pytest.raises(SchemaError, match="contains itself"):
        schema_of_avro({"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]})
    registry.is_down = True
    with pytest.raises(RetriableError, match="no schema registry answers"):
        converter().to_bytes("orders", INT64_SCHEMA, 1)


def test_keys_and_values_have_their_subjects(registry: RegistryInMemory) -> None:
    converter(converter_type="key").to_bytes("orders", INT64_SCHEMA, 1)
    converter(value_subject_name_strategy="io.confluent.kafka.serializers.subject.TopicRecordNameStrategy").to_bytes(
        "orders", NAMED, Struct.of(NAMED, {"x": 1})
    )
    assert registry("GET", "subjects") == ["orders-key", "orders-shop.Point"]
    with pytest.raises(InvalidValue, match=r"auto\.register\.schemas is false"):
        converter(auto_register_schemas="false").to_bytes("other", INT64_SCHEMA, 1)
    assert converter().to_bytes("orders", None, None) is None
    assert converter().from_bytes("orders", None).value is None
