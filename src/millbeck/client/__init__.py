"""An asyncio Kafka client that works with any broker, Apache Kafka's as well as millbeck's.

    from millbeck.client import Admin, Consumer, Producer, ShareConsumer

    async with Producer({"bootstrap.servers": "127.0.0.1:9092"}, linger_ms=20) as producer:
        await producer.send("orders", b"value", key=b"key")

Each client takes settings under Kafka's names, as a dictionary or as keyword arguments, and starts in the running event
loop with its first call. ``environment=`` replaces network, clock and randomness, as the simulator does. These names
are imported lazily, on first access, so that a program loads only what it uses.

`protocol` and `connection` talk to one broker, `cluster` finds the broker to talk to, and `producer`, `consumer`,
`share` and `admin` are the public API.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millbeck.client.admin import Admin as Admin
    from millbeck.client.committed_offset import CommittedOffset as CommittedOffset
    from millbeck.client.consumer import Consumer as Consumer
    from millbeck.client.consumer.listener import RebalanceListener as RebalanceListener
    from millbeck.client.group_member import GroupMember as GroupMember
    from millbeck.client.producer import Producer as Producer
    from millbeck.client.producer import RecordMetadata as RecordMetadata
    from millbeck.client.producer.record import ProducerRecord as ProducerRecord
    from millbeck.client.serialization import Deserializer as Deserializer
    from millbeck.client.serialization import Serializer as Serializer
    from millbeck.client.share import AcknowledgeType as AcknowledgeType
    from millbeck.client.share import AcquiredRecord as AcquiredRecord
    from millbeck.client.share import ShareConsumer as ShareConsumer
    from millbeck.kernel.ids import TopicPartition as TopicPartition
    from millbeck.records.record import Header as Header
    from millbeck.records.record import Record as Record

_HOMES = {
    "Admin": "millbeck.client.admin",
    "AcknowledgeType": "millbeck.client.share",
    "AcquiredRecord": "millbeck.client.share",
    "CommittedOffset": "millbeck.client.committed_offset",
    "Consumer": "millbeck.client.consumer",
    "Deserializer": "millbeck.client.serialization",
    "GroupMember": "millbeck.client.group_member",
    "Header": "millbeck.records.record",
    "Producer": "millbeck.client.producer",
    "ProducerRecord": "millbeck.client.producer.record",
    "RebalanceListener": "millbeck.client.consumer.listener",
    "Record": "millbeck.records.record",
    "RecordMetadata": "millbeck.client.producer",
    "Serializer": "millbeck.client.serialization",
    "ShareConsumer": "millbeck.client.share",
    "TopicPartition": "millbeck.kernel.ids",
}

__all__ = [
    "AcknowledgeType",
    "AcquiredRecord",
    "Admin",
    "CommittedOffset",
    "Consumer",
    "Deserializer",
    "GroupMember",
    "Header",
    "Producer",
    "ProducerRecord",
    "RebalanceListener",
    "Record",
    "RecordMetadata",
    "Serializer",
    "ShareConsumer",
    "TopicPartition",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(home), name)
