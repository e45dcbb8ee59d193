"""aiokafka's producer, consumer and admin client, on millbeck's.

    from millbeck.client.compat.aiokafka import AIOKafkaConsumer, AIOKafkaProducer

A library that imports aiokafka itself gets these classes after `install`, which registers this package and its modules
under aiokafka's name:

    from millbeck.client.compat import aiokafka
    aiokafka.install()                      # before anything imports aiokafka
    from faststream.kafka import KafkaBroker

docs/client-migration.md says what is the same, what differs, and what is not there.
"""

from __future__ import annotations

from millbeck.client.compat.aiokafka.abc import ConsumerRebalanceListener
from millbeck.client.compat.aiokafka.consumer import AIOKafkaConsumer
from millbeck.client.compat.aiokafka.errors import ConsumerStoppedError, IllegalOperation
from millbeck.client.compat.aiokafka.installation import install
from millbeck.client.compat.aiokafka.producer import AIOKafkaProducer
from millbeck.client.compat.aiokafka.structs import (
    ConsumerRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)

__all__ = [
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerStoppedError",
    "IllegalOperation",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "TopicPartition",
    "install",
]
