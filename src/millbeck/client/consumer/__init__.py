"""The consumer: use `Consumer`; the other modules are its parts."""

from millbeck.client.committed_offset import CommittedOffset
from millbeck.client.consumer.client import Consumer, OffsetAndTimestamp
from millbeck.client.consumer.config import ConsumerConfig

__all__ = ["CommittedOffset", "Consumer", "ConsumerConfig", "OffsetAndTimestamp"]
