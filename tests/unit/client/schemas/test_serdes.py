"""Serializers over a registry: which schema is written with, what is on the wire, and what is refused."""

from __future__ import annotations

import json
import pickle
import struct
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("starlette")
pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf")
pytest.importorskip("jsonschema_rs")

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from millbeck.client.schemas.avro import AvroSerde
from millbeck.client.schemas.errors import BadRecord, SchemaError, UnknownSchema
from millbeck.client.schemas.json_schema import JsonSchemaSerde
from millbeck.client.schemas.model import Schema
from millbeck.client.schemas.protobuf import ProtobufSerde
from millbeck.client.schemas.protoc import compiled
from millbeck.client.schemas.registry_client import RegistryClient
from millbeck.kernel.errors import InvalidConfig
from millbeck.records.record import Header
from tests.unit.client.schemas.registry_in_memory import RegistryInMemory

SETTINGS: dict[str, Any] = {"schema.registry.url": "http://registry:8081"}
REGISTERING = {**SETTINGS, "auto.register.schemas": True}
ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "string"}]}
NOTED = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": "-"}]}
CUSTOMER = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> RegistryInMemory:
    return RegistryInMemory(monkeypatch)


def classes(**files: str) -> dict[str, Any]:
    """Message classes of .proto texts, by name, as protoc would generate them; the last file imports the others."""
    named = {f"{name}.proto": f'syntax = "proto3"; {text}' for name, text in files.items()}
    main = list(named)[-1]
    found = FileDescriptorSet.FromString(compiled(named[main], [each for each in named.items() if each[0] != main]))
    found.file[-1].name = main
    pool = DescriptorPool()
    for each in found.file:
        pool.AddSerializedFile(each.SerializeToString())
    return {
        message.full_name: GetMessageClass(message)
        for each in found.file
        for message in pool.FindFileByName(each.name).message_types_by_name.values()
    }


# which schema


def test_a_schema_that_is_not_registered_is_refused_with_what_to_do(registry: RegistryInMemory) -> None:
    with pytest.raises(UnknownSchema, match=r"auto\.register\.schemas is false: register it with millbeck registry"):
        AvroSerde(SETTINGS, schema=ORDER).serialize("orders", {"id": "a"}, [])
    assert registry("GET", "subjects") == []


def test_a_registered_schema_is_written_with_its_id(registry: RegistryInMemory) -> None:
    schema_id = registry.register("orders-value", ORDER)
    record = AvroSerde(SETTINGS, schema=ORDER).serialize("orders", {"id": "a"}, [])
    assert record == struct.pack(">BI", 0, schema_id) + b"\x02a"
    assert AvroSerde(SETTINGS).deserialize("orders", record, []) == {"id": "a"}


def test_schemas_are_registered_where_that_is_asked_for(registry: RegistryInMemory) -> None:
    AvroSerde(REGISTERING, schema=ORDER).serialize("orders", {"id": "a"}, [])
    AvroSerde(REGISTERING, schema=ORDER, is_key=True).serialize("orders", {"id": "a"}, [])
    assert registry("GET", "subjects") == ["orders-key", "orders-value"]


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TopicNameStrategy", "orders-value"),
        ("RecordNameStrategy", "shop.Order"),
        ("io.confluent.kafka.serializers.subject.TopicRecordNameStrategy", "orders-shop.Order"),
    ],
)
def test_the_strategy_names_the_subject(registry: RegistryInMemory, strategy: str, subject: str) -> None:
    AvroSerde({**REGISTERING, "subject.name.strategy": strategy}, schema=ORDER).serialize("orders", {"id": "a"}, [])
    assert registry("GET", "subjects") == [subject]


def test_values_are_written_with_the_latest_schema(registry: RegistryInMemory) -> None:
    registry.register("orders-value", ORDER)
    latest = registry.register("orders-value", NOTED)
    serde = AvroSerde({**SETTINGS, "use.latest.version": True}, schema=NOTED)
    record = serde.serialize("orders", {"id": "a", "note": "n"}, [])
    assert record[:5] == struct.pack(">BI", 0, latest)
    assert AvroSerde(SETTINGS, schema=ORDER).deserialize("orders", record, []) == {"id": "a"}


def test_a_program_whose_schema_does_not_fit_the_latest_does_not_write(registry: RegistryInMemory) -> None:
    registry.register("orders-value", ORDER)
    other = {**ORDER, "fields": [{"name": "id", "type": "int"}]}
    latest = {**SETTINGS, "use.latest.version": True}
    with pytest.raises(SchemaError, match=r"latest\.compatibility\.strict.*TYPE_MISMATCH"):
        AvroSerde(latest, schema=other).serialize("orders", {"id": "a"}, [])
    loose = AvroSerde({**latest, "latest.compatibility.strict": False}, schema=other)
    assert loose.serialize("orders", {"id": "a"}, []).endswith(b"\x02a")


def test_the_latest_schema_with_some_metadata_is_found(registry: RegistryInMemory) -> None:
    first = registry.register("orders-value", ORDER, metadata={"properties": {"major": "1"}})
    registry.register("orders-value", NOTED, metadata={"properties": {"major": "2"}})
    serde = AvroSerde({**SETTINGS, "use.latest.with.metadata": "major=1"})
    assert serde.serialize("orders", {"id": "a"}, [])[:5] == struct.pack(">BI", 0, first)


def test_a_schema_in_another_order_is_found_when_normalized(registry: RegistryInMemory) -> None:
    registry.register("c-value", CUSTOMER, schemaType="JSON")
    turned = dict(reversed(CUSTOMER.items()))
    with pytest.raises(UnknownSchema):
        JsonSchemaSerde(SETTINGS, schema=turned).serialize("c", {"name": "a"}, [])
    assert JsonSchemaSerde({**SETTINGS, "normalize.schemas": True}, schema=turned).serialize("c", {"name": "a"}, [])


# on the wire


def test_the_guid_goes_into_a_header_and_is_read_from_there(registry: RegistryInMemory) -> None:
    registry.register("orders-value", ORDER)
    guid = registry("GET", "subjects", "orders-value", "versions", "1")["guid"]
    headers: list[Header] = []
    serde = AvroSerde({**SETTINGS, "schema.id.serializer": "HeaderSchemaIdSerializer"}, schema=ORDER)
    assert serde.serialize("orders", {"id": "a"}, headers) == b"\x02a"
    assert headers == [("__value_schema_id", b"\1" + UUID(guid).bytes)]
    assert AvroSerde(SETTINGS).deserialize("orders", b"\x02a", headers) == {"id": "a"}


@pytest.mark.parametrize("location", ["PrefixSchemaIdSerializer", "HeaderSchemaIdSerializer"])
def test_messages_go_with_what_they_import(registry: RegistryInMemory, location: str) -> None:
    made = classes(
        customer="package shop; message Customer { string name = 1; }",
        order='package shop; import "customer.proto"; import "google/protobuf/timestamp.proto"; message Other {} '
        "message Order { message Line { int32 n = 1; } Customer customer = 1; google.protobuf.Timestamp at = 2; }",
    )
    settings = {**REGISTERING, "schema.id.serializer": location}
    order = made["shop.Order"](customer={"name": "a"})
    headers: list[Header] = []
    record = ProtobufSerde(settings, message=made["shop.Order"]).serialize("orders", order, headers)
    assert registry("GET", "subjects") == ["customer.proto", "orders-value"]
    if location.startswith("Prefix"):
        assert record[5:] == bytes([2, 2]) + order.SerializeToString()
    assert ProtobufSerde(SETTINGS, message=made["shop.Order"]).deserialize("orders", record, headers) == order
    dynamic = ProtobufSerde(SETTINGS).deserialize("orders", record, headers)
    assert (dynamic.DESCRIPTOR.full_name, dynamic.customer.name) == ("shop.Order", "a")
    line = made["shop.Order"].DESCRIPTOR.nested_types_by_name["Line"]
    nested = ProtobufSerde(SETTINGS).serialize("orders", GetMessageClass(line)(n=3), [])
    assert nested[5:] == bytes([4, 2, 0, 8, 3])


def test_a_message_registered_as_text_is_found_by_its_descriptor(registry: RegistryInMemory) -> None:
    made = classes(order="message Order { string id = 1; }")
    text = 'syntax = "proto3";\n// written by hand\nmessage Order {\n  string id = 1;\n}\n'
    schema_id = registry.register("orders-value", text, schemaType="PROTOBUF")
    record = ProtobufSerde(SETTINGS, message=made["Order"]).serialize("orders", made["Order"](id="a"), [])
    assert record == struct.pack(">BI", 0, schema_id) + b"\0" + b"\n\1a"


def test_documents_are_checked_when_written_and_when_read(registry: RegistryInMemory) -> None:
    registry.register("customer", CUSTOMER, schemaType="JSON")
    order = {"type": "object", "properties": {"customer": {"$ref": "customer.json"}}}
    listed = [{"name": "customer.json", "subject": "customer", "version": 1}]
    schema_id = registry.register("orders-value", order, schemaType="JSON", references=listed)
    serde = JsonSchemaSerde(SETTINGS)
    record = serde.serialize("orders", {"customer": {"name": "a"}}, [])
    assert record == struct.pack(">BI", 0, schema_id) + b'{"customer":{"name":"a"}}'
    assert serde.deserialize("orders", record, []) == {"customer": {"name": "a"}}
    with pytest.raises(BadRecord, match="at /customer"):
        serde.serialize("orders", {"customer": {}}, [])
    with pytest.raises(BadRecord, match="does not match the schema"):
        serde.deserialize("orders", record[:5] + b'{"customer":1}', [])
    unchecked = JsonSchemaSerde({**SETTINGS, "json.fail.invalid.schema": False})
    assert unchecked.serialize("orders", {"customer": {}}, []).endswith(b'{"customer":{}}')


def test_avro_references_are_resolved(registry: RegistryInMemory) -> None:
    customer = {"type": "record", "name": "shop.Customer", "fields": [{"name": "name", "type": "string"}]}
    registry.register("shop.Customer", customer)
    order = {"type": "record", "name": "shop.Order", "fields": [{"name": "customer", "type": "shop.Customer"}]}
    given = Schema("AVRO", json.dumps(order), (("shop.Customer", json.dumps(customer)),))
    record = AvroSerde(REGISTERING, schema=given).serialize("orders", {"customer": {"name": "a"}}, [])
    assert AvroSerde(SETTINGS).deserialize("orders", record, []) == {"customer": {"name": "a"}}
    version = registry("GET", "subjects", "orders-value", "versions", "1")
    assert version["references"] == [{"name": "shop.Customer", "subject": "shop.Customer", "version": 1}]


BAD: dict[str, tuple[bytes, str]] = {
    "too short": (b"\0\0", "too few"),
    "another magic byte": (b"{}        ", "begins with 0x7b"),
    "an unknown id": (b"\0\0\0\0\x63a", "the record's schema 99 is not in"),
    "not of its schema": (b"\0\0\0\0\1\x08a", "does not match its schema"),
    "more than its schema": (b"\0\0\0\0\1\x02abb", "2 of the record's 4 bytes are left over"),
}


@pytest.mark.parametrize(("record", "reason"), BAD.values(), ids=BAD.keys())
def test_what_is_no_record_is_refused_with_the_reason(registry: RegistryInMemory, record: bytes, reason: str) -> None:
    registry.register("orders-value", ORDER)
    with pytest.raises(BadRecord, match=reason):
        AvroSerde(SETTINGS).deserialize("orders", record, [])


def test_a_value_that_does_not_fit_is_refused(registry: RegistryInMemory) -> None:
    registry.register("orders-value", ORDER)
    with pytest.raises(BadRecord, match="does not match the schema"):
        AvroSerde(SETTINGS, schema=ORDER).serialize("orders", {"id": 7}, [])


# what is asked


def test_a_registry_is_asked_once_for_each_schema(registry: RegistryInMemory) -> None:
    registry.register("orders-value", ORDER)
    serde = AvroSerde(SETTINGS, schema=ORDER)
    records = [serde.serialize("orders", {"id": "a"}, []) for _ in range(3)]
    assert len(registry.asked) == 1
    assert [serde.deserialize("orders", each, []) for each in records] == [{"id": "a"}] * 3
    assert len(registry.asked) == 2
    registry.is_down = True
    assert serde.deserialize("orders", serde.serialize("orders", {"id": "b"}, []), []) == {"id": "b"}


def test_what_is_not_there_is_remembered_for_a_while(registry: RegistryInMemory) -> None:
    client = RegistryClient(SETTINGS)
    for _ in range(3):
        with pytest.raises(UnknownSchema):
            client.by_id(7)
    assert len(registry.asked) == 1
    forgetful = RegistryClient({**SETTINGS, "missing.cache.ttl.sec": 0})
    for _ in range(3):
        with pytest.raises(UnknownSchema):
            forgetful.by_id(7)
    assert len(registry.asked) == 4


def test_caches_are_bounded(registry: RegistryInMemory) -> None:
    ids = [registry.register(name, {"type": "fixed", "name": name, "size": 1}) for name in "abc"]
    client = RegistryClient({**SETTINGS, "cache.capacity": 2})
    for schema_id in (*ids, ids[0]):
        client.by_id(schema_id)
    assert len(registry.asked) == 4


def test_a_pickled_client_asks_the_same_registry(registry: RegistryInMemory) -> None:
    schema_id = registry.register("orders-value", ORDER)
    client = pickle.loads(pickle.dumps(RegistryClient(SETTINGS)))
    assert client.name == "http://registry:8081"
    assert json.loads(client.by_id(schema_id).text) == ORDER


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "schema.registry.url is not set"),
        ({**SETTINGS, "auto.register.schema": True}, "Unknown configuration auto.register.schema"),
        ({**SETTINGS, "subject.name.strategy": "Best"}, "subject.name.strategy: Best"),
        ({**SETTINGS, "schema.id.serializer": "Footer"}, "schema.id.serializer"),
    ],
)
def test_settings_that_are_wrong_are_named(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidConfig, match=reason):
        AvroSerde(settings, schema=ORDER)
