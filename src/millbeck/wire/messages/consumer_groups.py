"""Consumer groups of KIP-848: ConsumerGroupHeartbeat, ConsumerGroupDescribe."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, message, nested, string, struct, uuid


@struct
class ConsumerGroupHeartbeatTopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    """Heartbeat of a member. Null fields are unchanged since the last heartbeat. Version 1 adds regular expressions."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(of=string, nullable="0+", default=None)
    subscribed_topic_regex: str | None = string(versions="1+", nullable="0+", default=None)
    server_assignor: str | None = string(nullable="0+", default=None)
    topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] | None = array(
        of=ConsumerGroupHeartbeatTopicPartitions, nullable="0+", default=None
    )


@struct
class ConsumerAssignment:
    topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] = array(of=ConsumerGroupHeartbeatTopicPartitions)


@message(kind=Kind.RESPONSE, api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    """The member epoch, and the assignment if it changed."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: ConsumerAssignment | None = nested(of=ConsumerAssignment, nullable="0+", default=None)


@message(kind=Kind.REQUEST, api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    """Describe groups by id."""

    group_ids: list[str] = array(of=string)
    include_authorized_operations: bool = boolean()


@struct
class ConsumerGroupDescribeTopicPartitions:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(of=int32)


@struct
class DescribedConsumerAssignment:
    topic_partitions: list[ConsumerGroupDescribeTopicPartitions] = array(of=ConsumerGroupDescribeTopicPartitions)


@struct
class ConsumerGroupMember:
    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(of=string)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    assignment: DescribedConsumerAssignment = nested(of=DescribedConsumerAssignment)
    target_assignment: DescribedConsumerAssignment = nested(of=DescribedConsumerAssignment)
    member_type: int = int8(versions="1+", default=-1, ignorable=True)


@struct
class DescribedConsumerGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[ConsumerGroupMember] = array(of=ConsumerGroupMember)
    authorized_operations: int = int32(default=-2147483648, doc="Bit field by operation; minimum int if not requested.")


@message(kind=Kind.RESPONSE, api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """The groups, with the current and target assignment of each member; version 1 has the member type."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    groups: list[DescribedConsumerGroup] = array(of=DescribedConsumerGroup)
