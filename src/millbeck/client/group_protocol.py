"""Encode and decode the payloads of the consumer protocol type: subscriptions and assignments.

Each payload begins with its version as an int16. A decoder ignores fields that later versions append.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from millbeck.kernel.ids import TopicPartition
from millbeck.wire.codec import decoder, encoder
from millbeck.wire.errors import DecodeError
from millbeck.wire.messages.classic_groups import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
)

PROTOCOL_TYPE: Final = "consumer"
_VERSION_MAX: Final = 3
_VERSION_SIZE: Final = 2


def _version_of(payload: bytes) -> int:
    if len(payload) < _VERSION_SIZE:
        raise DecodeError(f"a payload of {len(payload)} bytes has no version")
    version = int.from_bytes(payload[:_VERSION_SIZE], "big", signed=True)
    if version < 0:
        raise DecodeError(f"version {version} of the consumer protocol is not supported")
    return min(version, _VERSION_MAX)


def encode_subscription(subscription: ConsumerProtocolSubscription) -> bytes:
    version = _VERSION_MAX
    return version.to_bytes(_VERSION_SIZE, "big") + encoder(ConsumerProtocolSubscription, version)(subscription)


def decode_subscription(payload: bytes) -> ConsumerProtocolSubscription:
    """Decode a subscription. Raises `DecodeError`."""
    return decoder(ConsumerProtocolSubscription, _version_of(payload))(payload, _VERSION_SIZE)[0]


def encode_assignment(partitions: Iterable[TopicPartition], user_data: bytes | None = None) -> bytes:
    # Version 1 of the assignment has the same fields as 0 and 3, and clients of any age can read it.
    version = 1
    message = ConsumerProtocolAssignment(assigned_partitions=by_topic(partitions), user_data=user_data)
    return version.to_bytes(_VERSION_SIZE, "big") + encoder(ConsumerProtocolAssignment, version)(message)


def decode_assignment(payload: bytes) -> list[TopicPartition]:
    """Decode an assignment; an empty payload means no partitions. Raises `DecodeError`."""
    if not payload:
        return []
    message = decoder(ConsumerProtocolAssignment, _version_of(payload))(payload, _VERSION_SIZE)[0]
    return flattened(message.assigned_partitions)


def by_topic(partitions: Iterable[TopicPartition]) -> list[ConsumerTopicPartitions]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [ConsumerTopicPartitions(topic=topic, partitions=numbers) for topic, numbers in topics.items()]


def flattened(topics: Iterable[ConsumerTopicPartitions]) -> list[TopicPartition]:
    return [TopicPartition(entry.topic, partition) for entry in topics for partition in entry.partitions]
