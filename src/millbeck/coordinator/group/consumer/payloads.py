"""Encodes and decodes the consumer payloads embedded in JoinGroup and SyncGroup, for groups that are migrated.

Each payload starts with its version as an int16; fields appended by later versions are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable

from millbeck.coordinator.group.consumer import assignment
from millbeck.coordinator.group.consumer.assignment import Assignment
from millbeck.coordinator.group.consumer.cluster_view import ClusterView
from millbeck.wire.codec import decoder, encoder
from millbeck.wire.errors import DecodeError
from millbeck.wire.messages.classic_groups import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
)

VERSION_MAX = 3
_VERSION_SIZE = 2


def version_of(payload: bytes) -> int:
    """Return the payload's version; raises DecodeError if it is missing."""
    if len(payload) < _VERSION_SIZE:
        raise DecodeError(f"a payload of {len(payload)} bytes is too short for a version")
    version = int.from_bytes(payload[:_VERSION_SIZE], "big", signed=True)
    if version < 0:
        raise DecodeError(f"invalid version {version} of the consumer protocol")
    return min(version, VERSION_MAX)


def read_subscription(payload: bytes) -> ConsumerProtocolSubscription:
    return decoder(ConsumerProtocolSubscription, version_of(payload))(payload, _VERSION_SIZE)[0]


def read_assignment(payload: bytes, cluster: ClusterView) -> Assignment:
    """Decode an assignment, leaving out topics that do not exist; an empty payload means no partitions."""
    if not payload:
        return assignment.NOTHING
    message = decoder(ConsumerProtocolAssignment, version_of(payload))(payload, _VERSION_SIZE)[0]
    return with_ids(message.assigned_partitions, cluster)


def with_ids(topics: Iterable[ConsumerTopicPartitions], cluster: ClusterView) -> Assignment:
    return assignment.gathered(
        (shape.topic_id, partition)
        for topic in topics
        if (shape := cluster.shape(topic.topic)) is not None
        for partition in topic.partitions
    )


def write_assignment(assigned: Assignment, version: int, cluster: ClusterView) -> bytes:
    """Encode an assignment in the version of the member's own subscription."""
    topics = [
        ConsumerTopicPartitions(name, list(partitions))
        for topic_id, partitions in assigned.items()
        if (name := cluster.name_of(topic_id)) is not None
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=topics)
    return version.to_bytes(_VERSION_SIZE, "big") + encoder(ConsumerProtocolAssignment, version)(message)
