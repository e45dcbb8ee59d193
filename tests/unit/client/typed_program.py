"""What a program with types writes; `test_typing` checks it with ``mypy --strict``, as that program's author would."""

from __future__ import annotations

import asyncio
from typing import Any, assert_type

from millbeck.client import AcquiredRecord, Consumer, Producer, Record, RecordMetadata, ShareConsumer, TopicPartition
from millbeck.client.serialization import IntSerde, JsonSerde, StrSerde


async def produce() -> None:
    async with Producer({"bootstrap.servers": "127.0.0.1:9092"}, linger_ms=5) as producer:
        assert_type(producer, Producer[bytes, bytes])
        assert_type(await producer.send("orders", b"value", key=b"key"), RecordMetadata)
        assert_type(producer.send_nowait("orders", None), asyncio.Future[RecordMetadata])
        producer.send_nowait("orders", "text")  # type: ignore[arg-type]
    texts = Producer(bootstrap_servers="h:1", key_serializer=IntSerde(), value_serializer=StrSerde())
    assert_type(texts, Producer[int, str])
    await texts.send("orders", "value", key=7)
    async with texts.transaction() as transaction:
        await transaction.send("orders", b"bytes", key=7)  # type: ignore[arg-type]


async def consume() -> None:
    async with Consumer({"group.id": "billing"}, bootstrap_servers="h:1") as consumer:
        consumer.subscribe(["orders"], on_revoked=lambda partitions: None)
        async for record in consumer:
            assert_type(record, Record[bytes, bytes])
            assert_type(record.value, bytes | None)
            assert_type(record.topic, str)
            record.offset = 7  # type: ignore[misc]
        assert_type(await consumer.poll(), dict[TopicPartition, list[Record[bytes, bytes]]])
    documents = Consumer(bootstrap_servers="h:1", key_deserializer=StrSerde(), value_deserializer=JsonSerde())
    async for document in documents:
        assert_type(document, Record[str, Any])
    named: Consumer[str, int] = Consumer({"key.deserializer": "str", "value.deserializer": "int"})
    assert_type((await anext(aiter(named))).value, int | None)


async def share() -> None:
    async with ShareConsumer(bootstrap_servers="h:1", group_id="jobs", value_deserializer=StrSerde()) as consumer:
        for acquired in await consumer.poll():
            assert_type(acquired, AcquiredRecord[bytes, str])
            assert_type(acquired.record.value, str | None)
