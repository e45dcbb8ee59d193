"""ConsumerGroupHeartbeat: the one request of a consumer group member (KIP-848)."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, nested, string, struct, uuid


@struct
class ConsumerGroupHeartbeatTopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    """Null fields are unchanged since the last heartbeat. Version 1 adds subscription by pattern."""

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
class Assignment:
    topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] = array(of=ConsumerGroupHeartbeatTopicPartitions)


@message(kind=Kind.RESPONSE, api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and its assignment when that changed."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = nested(of=Assignment, nullable="0+", default=None)
