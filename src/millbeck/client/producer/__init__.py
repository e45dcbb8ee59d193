"""The producer: use `Producer`; the other modules are its parts."""

from millbeck.client.producer.batch import RecordMetadata
from millbeck.client.producer.client import Producer
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.partitioner import Partitioner

__all__ = ["Partitioner", "Producer", "ProducerConfig", "RecordMetadata"]
