"""The records of consumer groups in ``__consumer_offsets``, with Kafka's types and fields."""

from __future__ import annotations

from typing import Any

from millbeck.wire.schema import Kind, array, bytes_, int8, int32, int64, message, nested, string, struct, uuid

GROUP_TYPE = 3
PARTITION_METADATA_TYPE = 4
MEMBER_TYPE = 5
TARGET_EPOCH_TYPE = 6
TARGET_MEMBER_TYPE = 7
CURRENT_MEMBER_TYPE = 8
REGULAR_EXPRESSION_TYPE = 16


@message(kind=Kind.DATA, versions="0", flexible="none")
class ConsumerGroupMetadataKey:
    group_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    """The group epoch, and a hash of the subscribed topics at that epoch."""

    epoch: int = int32()
    metadata_hash: int = int64(default=0, tag=0, doc="Hash of the subscribed topics; a change bumps the epoch.")


@message(kind=Kind.DATA, versions="0", flexible="none")
class ConsumerGroupPartitionMetadataKey:
    """Predecessor of the metadata hash; only its tombstones are written."""

    group_id: str = string()


@struct
class PartitionRacks:
    partition: int = int32()
    racks: list[str] = array(of=string)


@struct
class TopicMetadata:
    topic_id: bytes = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: list[PartitionRacks] = array(of=PartitionRacks)


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    topics: list[TopicMetadata] = array(of=TopicMetadata)


@message(kind=Kind.DATA, versions="0", flexible="none")
class ConsumerGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@struct
class ClassicProtocol:
    name: str = string()
    metadata: bytes = bytes_()


@struct
class ClassicMemberMetadata:
    """The terms of a member that joined with JoinGroup."""

    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocol] = array(of=ClassicProtocol)


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """A member's identity and subscription."""

    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(of=string)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+", default=None)
    classic_member_metadata: ClassicMemberMetadata | None = nested(
        of=ClassicMemberMetadata,
        nullable="0+",
        tag=0,
        doc="Null for a member of the consumer protocol, and written then: if omitted it decodes as an empty struct.",
    )


@message(kind=Kind.DATA, versions="0", flexible="none")
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32(doc="The group epoch that the target was computed for.")
    assignment_timestamp: int = int64(
        default=0, tag=0, ignorable=True, doc="The time of the computation, which Kafka reads."
    )


@struct
class AssignedTopic:
    topic_id: bytes = uuid()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.DATA, versions="0", flexible="none")
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """The target assignment of a member."""

    topic_partitions: list[AssignedTopic] = array(of=AssignedTopic)


@struct
class HeldTopic:
    topic_id: bytes = uuid()
    partitions: list[int] = array(of=int32)
    assignment_epochs: list[int] | None = array(
        of=int32, nullable="0+", tag=0, doc="The member epoch at which each was assigned (KIP-1251)."
    )


@message(kind=Kind.DATA, versions="0", flexible="none")
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """A member's current assignment and its progress toward the target."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32(doc="Also accepted, in case the response with the new epoch was lost.")
    state: int = int8()
    assigned_partitions: list[HeldTopic] = array(of=HeldTopic)
    partitions_pending_revocation: list[HeldTopic] = array(of=HeldTopic)


@message(kind=Kind.DATA, versions="0", flexible="none")
class ConsumerGroupRegularExpressionKey:
    group_id: str = string()
    regular_expression: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The topics a regular expression matched when it was last resolved."""

    topics: list[str] = array(of=string)
    version: int = int64(doc="Version of the metadata it was resolved against.")
    timestamp: int = int64()


ConsumerKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
ConsumerValue = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)

DECLARED: tuple[tuple[int, type[Any], type[Any]], ...] = (
    (GROUP_TYPE, ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (PARTITION_METADATA_TYPE, ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (MEMBER_TYPE, ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (TARGET_EPOCH_TYPE, ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (TARGET_MEMBER_TYPE, ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (CURRENT_MEMBER_TYPE, ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (REGULAR_EXPRESSION_TYPE, ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)
"""The record types: number, key class and value class."""
