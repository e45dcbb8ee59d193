"""Confluent's serializers, unmodified, with the registry: three formats, blocking and asyncio, by id and by guid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("jsonschema")
pytest.importorskip("confluent_kafka.schema_registry")

import confluent_kafka.schema_registry as confluent
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass

from millbeck.testing import broker, registry

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}]}
DOCUMENT = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "string"}, "customer": {"$ref": "customer.json"}},
}
CUSTOMER = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with broker() as running, registry(running.bootstrap) as address:
        yield address


@pytest.fixture(scope="module")
def order_class() -> Any:
    """The class of a message whose file imports another file and one of Google's, as protoc would generate it."""
    inner = FileDescriptorProto(name="shop_customer.proto", package="shop", syntax="proto3")
    inner.message_type.add(name="Customer").field.add(name="name", number=1, type=9, label=1)
    outer = FileDescriptorProto(name="shop_order.proto", package="shop", syntax="proto3")
    outer.dependency.extend(["shop_customer.proto", "google/protobuf/timestamp.proto"])
    order = outer.message_type.add(name="Order")
    order.field.add(name="customer", number=1, type=11, type_name=".shop.Customer", label=1)
    order.field.add(name="at", number=2, type=11, type_name=".google.protobuf.Timestamp", label=1)
    from google.protobuf import timestamp_pb2

    assert timestamp_pb2.DESCRIPTOR is not None
    for each in (inner, outer):
        Default().AddSerializedFile(each.SerializeToString())
    return GetMessageClass(Default().FindMessageTypeByName("shop.Order"))


def value_of(topic: str, headers: Any = None) -> Any:
    return SerializationContext(topic, MessageField.VALUE, headers)


def test_avro_by_id_and_by_guid(url: str) -> None:
    from confluent_kafka.schema_registry import header_schema_id_serializer
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

    client = confluent.SchemaRegistryClient({"url": url})
    value = {"id": "abcdef", "n": 7}
    by_id = AvroSerializer(client, json.dumps(ORDER))(value, value_of("avro"))
    settings = {"auto.register.schemas": False, "schema.id.serializer": header_schema_id_serializer}
    headers: list[Any] = []
    by_guid = AvroSerializer(client, json.dumps(ORDER), conf=settings)(
        {"id": "abcdef", "n": 7}, value_of("avro", headers)
    )
    assert by_guid == by_id[5:]
    for record, found in ((by_id, None), (by_guid, headers)):
        reader = AvroDeserializer(confluent.SchemaRegistryClient({"url": url}))
        assert reader(record, value_of("avro", found)) == value


def test_protobuf_with_imports(url: str, order_class: Any) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

    client = confluent.SchemaRegistryClient({"url": url})
    order = order_class(customer={"name": "a"})
    record = ProtobufSerializer(order_class, client)(order, value_of("proto"))
    assert ProtobufDeserializer(order_class, {}, client)(record, value_of("proto")) == order
    other = confluent.SchemaRegistryClient({"url": url})
    unregistering = ProtobufSerializer(order_class, other, {"auto.register.schemas": False})
    assert unregistering(order, value_of("proto")) == record
    assert ProtobufDeserializer(order_class, {}, other)(record, value_of("proto")) == order
    latest = client.get_latest_version("proto-value").schema
    assert str(latest.schema_str).startswith('syntax = "proto3";')
    assert [each.name for each in latest.references or ()] == ["shop_customer.proto"]


def test_protobuf_with_the_latest_version(url: str, order_class: Any) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

    client = confluent.SchemaRegistryClient({"url": url})
    order = order_class(customer={"name": "a"})
    ProtobufSerializer(order_class, client)(order, value_of("proto-latest"))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    record = ProtobufSerializer(order_class, client, settings)(order, value_of("proto-latest"))
    assert (
        ProtobufDeserializer(order_class, {"use.latest.version": True}, client)(record, value_of("proto-latest"))
        == order
    )


def test_json_schema_with_a_reference(url: str) -> None:
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    from confluent_kafka.serialization import SerializationError

    client = confluent.SchemaRegistryClient({"url": url})
    client.register_schema("customer", confluent.Schema(json.dumps(CUSTOMER), "JSON"))
    referring = confluent.Schema(
        json.dumps(DOCUMENT), "JSON", [confluent.SchemaReference("customer.json", "customer", 1)]
    )
    write = JSONSerializer(referring, client)
    record = write({"id": "a", "customer": {"name": "b"}}, value_of("json"))
    read = JSONDeserializer(referring, schema_registry_client=confluent.SchemaRegistryClient({"url": url}))
    assert read(record, value_of("json")) == {"id": "a", "customer": {"name": "b"}}
    with pytest.raises(SerializationError):
        write({"id": "a", "customer": {}}, value_of("json"))


def test_the_asyncio_clients_do_the_same(url: str, order_class: Any) -> None:
    from confluent_kafka.schema_registry.avro import AsyncAvroDeserializer, AsyncAvroSerializer
    from confluent_kafka.schema_registry.json_schema import AsyncJSONDeserializer, AsyncJSONSerializer
    from confluent_kafka.schema_registry.protobuf import AsyncProtobufDeserializer, AsyncProtobufSerializer

    async def run() -> None:
        client = confluent.AsyncSchemaRegistryClient({"url": url})
        order, value = order_class(customer={"name": "a"}), {"id": "a", "n": 7}
        avro = await (await AsyncAvroSerializer(client, json.dumps(ORDER)))(value, value_of("avro-async"))
        assert await (await AsyncAvroDeserializer(client))(avro, value_of("avro-async")) == value
        proto = await (await AsyncProtobufSerializer(order_class, client))(order, value_of("proto-async"))
        assert await (await AsyncProtobufDeserializer(order_class, {}, client))(proto, value_of("proto-async")) == order
        schema = json.dumps({"title": "T", **CUSTOMER})
        document = await (await AsyncJSONSerializer(schema, client))({"name": "a"}, value_of("json-async"))
        reader = await AsyncJSONDeserializer(schema, schema_registry_client=client)
        assert await reader(document, value_of("json-async")) == {"name": "a"}

    asyncio.run(run())


def test_our_serializers_and_confluents_read_each_other(url: str, order_class: Any) -> None:
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

    from millbeck.client.schemas.avro import AvroSerde
    from millbeck.client.schemas.json_schema import JsonSchemaSerde
    from millbeck.client.schemas.protobuf import ProtobufSerde

    client = confluent.SchemaRegistryClient({"url": url})
    settings: dict[str, Any] = {"schema.registry.url": url, "auto.register.schemas": True}
    order, value, document = order_class(customer={"name": "a"}), {"id": "a", "n": 7}, {"name": "a"}
    schema = json.dumps({"title": "T", **CUSTOMER})
    avro, proto = AvroSerde(settings, schema=ORDER), ProtobufSerde(settings, message=order_class)
    json_schema = JsonSchemaSerde(settings, schema=schema)
    assert AvroDeserializer(client)(avro.serialize("both-a", value, []), value_of("both-a")) == value
    assert (
        ProtobufDeserializer(order_class, {}, client)(proto.serialize("both-p", order, []), value_of("both-p")) == order
    )
    reader = JSONDeserializer(schema, schema_registry_client=client)
    assert reader(json_schema.serialize("both-j", document, []), value_of("both-j")) == document
    theirs = AvroSerializer(client, json.dumps(ORDER))(value, value_of("both-a"))
    assert avro.deserialize("both-a", theirs, []) == value
    theirs = ProtobufSerializer(order_class, client)(order, value_of("both-p"))
    assert proto.deserialize("both-p", theirs, []) == order
    assert ProtobufSerde(settings).deserialize("both-p", theirs, []).SerializeToString() == order.SerializeToString()
    theirs = JSONSerializer(schema, client)(document, value_of("both-j"))
    assert json_schema.deserialize("both-j", theirs, []) == document
