"""Share groups (KIP-932): heartbeat, describe, and their start offsets."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, int64, message, nested, string, struct, uuid


@message(kind=Kind.REQUEST, api_key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    """Heartbeat of a member. Null fields are unchanged since the last heartbeat."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = array(of=string, nullable="0+", default=None)


@struct
class ShareGroupHeartbeatTopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(of=int32)


@struct
class ShareAssignment:
    topic_partitions: list[ShareGroupHeartbeatTopicPartitions] = array(of=ShareGroupHeartbeatTopicPartitions)


@message(kind=Kind.RESPONSE, api_key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    """The member epoch, and the assignment if it changed."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: ShareAssignment | None = nested(of=ShareAssignment, nullable="0+", default=None)


@message(kind=Kind.REQUEST, api_key=77, versions="1", flexible="0+")
class ShareGroupDescribeRequest:
    """Describe groups by id."""

    group_ids: list[str] = array(of=string)
    include_authorized_operations: bool = boolean()


@struct
class ShareGroupDescribeTopicPartitions:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(of=int32)


@struct
class DescribedShareAssignment:
    topic_partitions: list[ShareGroupDescribeTopicPartitions] = array(of=ShareGroupDescribeTopicPartitions)


@struct
class ShareGroupMember:
    member_id: str = string()
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(of=string)
    assignment: DescribedShareAssignment = nested(of=DescribedShareAssignment)


@struct
class DescribedShareGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[ShareGroupMember] = array(of=ShareGroupMember)
    authorized_operations: int = int32(default=-2147483648, doc="Bit field by operation; minimum int if not requested.")


@message(kind=Kind.RESPONSE, api_key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    """The groups and their members' assignments."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    groups: list[DescribedShareGroup] = array(of=DescribedShareGroup)


@struct
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = string()
    partitions: list[int] = array(of=int32)


@struct
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        of=DescribeShareGroupOffsetsRequestTopic, nullable="0+"
    )


@message(kind=Kind.REQUEST, api_key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest:
    """Describe the start offsets; null topics request all."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(of=DescribeShareGroupOffsetsRequestGroup)


@struct
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int = int32()
    start_offset: int = int64()
    leader_epoch: int = int32()
    lag: int = int64(versions="1+", default=-1, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = string()
    topic_id: bytes = uuid()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(of=DescribeShareGroupOffsetsResponsePartition)


@struct
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(of=DescribeShareGroupOffsetsResponseTopic)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(kind=Kind.RESPONSE, api_key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    """The start offsets; version 1 adds the lag."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(of=DescribeShareGroupOffsetsResponseGroup)


@struct
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int = int32()
    start_offset: int = int64()


@struct
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = string()
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(of=AlterShareGroupOffsetsRequestPartition)


@message(kind=Kind.REQUEST, api_key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest:
    """Set the start offsets of an empty group."""

    group_id: str = string()
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(of=AlterShareGroupOffsetsRequestTopic)


@struct
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = string()
    topic_id: bytes = uuid()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(of=AlterShareGroupOffsetsResponsePartition)


@message(kind=Kind.RESPONSE, api_key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    """The result for each partition."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(of=AlterShareGroupOffsetsResponseTopic)


@struct
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = string()


@message(kind=Kind.REQUEST, api_key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest:
    """Delete the state of topics in an empty group."""

    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(of=DeleteShareGroupOffsetsRequestTopic)


@struct
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = string()
    topic_id: bytes = uuid()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(kind=Kind.RESPONSE, api_key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    """The result for each topic."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(of=DeleteShareGroupOffsetsResponseTopic)
