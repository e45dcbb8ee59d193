"""The records of share groups in ``__consumer_offsets``, with Kafka's types and fields."""

from __future__ import annotations

from typing import Any

from millbeck.wire.schema import Kind, array, int8, int32, int64, message, string, struct, uuid

MEMBER_TYPE = 10
GROUP_TYPE = 11
TARGET_EPOCH_TYPE = 12
TARGET_MEMBER_TYPE = 13
CURRENT_MEMBER_TYPE = 14
STATE_PARTITIONS_TYPE = 15


@message(kind=Kind.DATA, versions="0", flexible="none")
class ShareGroupMetadataKey:
    group_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ShareGroupMetadataValue:
    """The group epoch, and a hash of the subscribed topics at that epoch."""

    epoch: int = int32()
    metadata_hash: int = int64(doc="Hash of the subscribed topics; a change bumps the epoch.")


@message(kind=Kind.DATA, versions="0", flexible="none")
class ShareGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    """A member's identity and subscription."""

    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(of=string)


@message(kind=Kind.DATA, versions="0", flexible="none")
class ShareGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32(doc="The group epoch that the target was computed for.")
    assignment_timestamp: int = int64(default=0, tag=0, ignorable=True)


@struct
class SharedTopic:
    topic_id: bytes = uuid()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.DATA, versions="0", flexible="none")
class ShareGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    """The target assignment of a member."""

    topic_partitions: list[SharedTopic] = array(of=SharedTopic)


@message(kind=Kind.DATA, versions="0", flexible="none")
class ShareGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    """A member's current assignment."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32(doc="Also accepted, in case the response with the new epoch was lost.")
    state: int = int8()
    assigned_partitions: list[SharedTopic] = array(of=SharedTopic)


@message(kind=Kind.DATA, versions="0", flexible="none")
class ShareGroupStatePartitionMetadataKey:
    group_id: str = string()


@struct
class StateTopic:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(of=int32)


@struct
class DeletingTopic:
    topic_id: bytes = uuid()
    topic_name: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    """The share partitions that are initialized in the share coordinator, being initialized or being deleted."""

    initializing_topics: list[StateTopic] = array(of=StateTopic)
    initialized_topics: list[StateTopic] = array(of=StateTopic)
    deleting_topics: list[DeletingTopic] = array(of=DeletingTopic)


ShareGroupKey = (
    ShareGroupMetadataKey
    | ShareGroupMemberMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)
ShareGroupValue = (
    ShareGroupMetadataValue
    | ShareGroupMemberMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)

DECLARED: tuple[tuple[int, type[Any], type[Any]], ...] = (
    (MEMBER_TYPE, ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    (GROUP_TYPE, ShareGroupMetadataKey, ShareGroupMetadataValue),
    (TARGET_EPOCH_TYPE, ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    (TARGET_MEMBER_TYPE, ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    (CURRENT_MEMBER_TYPE, ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    (STATE_PARTITIONS_TYPE, ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
)
SHARE_KEYS = (
    ShareGroupMetadataKey,
    ShareGroupMemberMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupStatePartitionMetadataKey,
)
