"""Keys and values become bytes and back, by object or by setting."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client import Consumer, Producer
from millbeck.client.errors import SerializationFailed
from millbeck.client.producer.record import ProducerRecord
from millbeck.client.serialization import BytesSerde, IntSerde, JsonSerde, StrSerde, serde_named
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Header
from tests.unit.client.fake_cluster import FakeCluster, simulate


@pytest.mark.parametrize(
    ("serde", "value", "data"),
    [
        (BytesSerde(), b"x", b"x"),
        (StrSerde(), "Mühle", "Mühle".encode()),
        (IntSerde(), -2, b"\xff" * 7 + b"\xfe"),
        (IntSerde(4), 258, b"\0\0\1\2"),
        (JsonSerde(), {"a": [1, None]}, b'{"a":[1,null]}'),
    ],
)
def test_what_is_serialized_is_deserialized(serde: Any, value: Any, data: bytes) -> None:
    assert serde.serialize("t", value, []) == data
    assert serde.deserialize("t", data, []) == value


def test_settings_name_them() -> None:
    assert isinstance(serde_named("key.serializer", "str", "Serializer"), StrSerde)
    for java in ("org.apache.kafka.common.serialization.IntegerDeserializer", "IntegerDeserializer"):
        assert serde_named("value.deserializer", java, "Deserializer").deserialize("t", b"\0\0\0\1", []) == 1
    named = serde_named("value.serializer", "millbeck.client.serialization:JsonSerde", "Serializer")
    assert isinstance(named, JsonSerde)
    for name in ("org.apache.kafka.common.serialization.VoidSerializer", "nothing", "no.such:Class"):
        with pytest.raises(InvalidConfig, match=r"key\.serializer: "):
            Producer({"bootstrap.servers": "h:1", "key.serializer": name})
    with pytest.raises(InvalidConfig, match=r"interceptor\.classes: "):
        Consumer({"bootstrap.servers": "h:1", "interceptor.classes": "no.such:Class"})


def test_a_producer_serializes_and_a_consumer_deserializes() -> None:
    class Stamping:
        """Adds a header where it knows the type of what it serializes."""

        def serialize(self, topic: str, value: str, headers: list[Header]) -> bytes:
            headers.append(("length", b"%d" % len(value)))
            return value.encode()

    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        settings = {"bootstrap.servers": cluster.bootstrap, "key.serializer": "str"}
        async with Producer(settings, value_serializer=Stamping(), environment=cluster.environment) as producer:
            await producer.send("a", "abc", key="k", headers=[("h", None)])  # type: ignore[arg-type]
            await producer.send("a", None)
            with pytest.raises(SerializationFailed, match="the value for topic a cannot be serialized"):
                await producer.send("a", 7)  # type: ignore[arg-type]
        read = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest", "key.deserializer": "str"}
        async with Consumer(read, value_deserializer=StrSerde(), environment=cluster.environment) as consumer:
            consumer.assign([TopicPartition("a", 0)])
            async with asyncio.timeout(60):
                first, second = (await consumer.poll(timeout_s=30))[TopicPartition("a", 0)]
        assert (first.key, first.value, first.headers) == ("k", "abc", (("h", None), ("length", b"3")))
        assert (second.key, second.value) == (None, None)

    simulate(scenario)


def test_producer_interceptors_change_records_and_learn_what_came_of_them() -> None:
    class Marking:
        def __init__(self) -> None:
            self.told: list[Any] = []

        def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
            if record.value == b"fails":
                raise ZeroDivisionError
            return record._replace(headers=(*record.headers, ("seen", b"1")))

        def on_acknowledgement(self, metadata: Any, error: BaseException | None) -> None:
            self.told.append(metadata.offset if error is None else error)

    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        marking = Marking()
        settings = {"bootstrap.servers": cluster.bootstrap}
        async with Producer(settings, interceptors=[marking], environment=cluster.environment) as producer:
            await producer.send("a", b"v")
            await producer.send("a", b"fails")
        assert log.values == [b"v", b"fails"]
        assert marking.told == [0, 1]

    simulate(scenario)
