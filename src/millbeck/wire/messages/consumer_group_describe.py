"""ConsumerGroupDescribe: consumer groups in full."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, message, nested, string, struct, uuid


@message(kind=Kind.REQUEST, api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    """By group id."""

    group_ids: list[str] = array(of=string)
    include_authorized_operations: bool = boolean()


@struct
class ConsumerGroupDescribeTopicPartitions:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(of=int32)


@struct
class Assignment:
    topic_partitions: list[ConsumerGroupDescribeTopicPartitions] = array(of=ConsumerGroupDescribeTopicPartitions)


@struct
class Member:
    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(of=string)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    assignment: Assignment = nested(of=Assignment)
    target_assignment: Assignment = nested(of=Assignment)
    member_type: int = int8(versions="1+", default=-1)


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(of=Member)
    authorized_operations: int = int32(
        default=-2147483648, doc="Bit field by operation; the least integer when not asked for."
    )


@message(kind=Kind.RESPONSE, api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """Current and target assignment of each member; version 1 tells classic members apart."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    groups: list[DescribedGroup] = array(of=DescribedGroup)
