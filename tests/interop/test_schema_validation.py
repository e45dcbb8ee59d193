"""A topic with validated schemas: Confluent's serializer writes, other bytes are refused by record, and Apache Kafka
starts on a copy of the directory, where the options have no effect."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from bench.systems import SYSTEMS
from bench.systems.apache_kafka import adopt
from millbeck.testing import registry

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]})
OPTION = "confluent.value.schema.validation"


def send(bootstrap: str, *values: bytes | None) -> list[KafkaError | None]:
    """What came of each record, all in one batch."""
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 200})
    for value in values:
        producer.produce("orders", value=value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    return errors


def alter(admin: AdminClient, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)


def test_kafka_starts_on_a_directory_with_validated_topics(tmp_path: Path) -> None:
    node = SYSTEMS["millbeck"](tmp_path / "node")
    with node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        new = NewTopic("orders", 1, 1, config={OPTION: "true"})
        admin.create_topics([new])["orders"].result(30)
        with registry(node.bootstrap) as url:
            client = SchemaRegistryClient({"url": url})
            client.register_schema("orders-value", Schema(ORDER, "AVRO"))
            serialize = AvroSerializer(client, ORDER, conf={"auto.register.schemas": False})
            good = serialize({"id": "a"}, SerializationContext("orders", MessageField.VALUE))
        assert good is not None
        assert send(node.bootstrap, good, good) == [None, None]
        refused = send(node.bootstrap, good, b"{}")
        assert [each is not None and each.code() for each in refused] == [KafkaError.INVALID_RECORD] * 2
        node.stop()
    shutil.copytree(node.data, tmp_path / "kafka" / "data")
    with adopt(tmp_path / "kafka", node_id=node.node_id) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        resource = ConfigResource(ResourceType.TOPIC, "orders")
        described = admin.describe_configs([resource])[resource].result(30)
        assert OPTION not in described
        assert send(kafka.bootstrap, good, b"{}") == [None, None]
        alter(admin, "retention.ms", "1000000")
