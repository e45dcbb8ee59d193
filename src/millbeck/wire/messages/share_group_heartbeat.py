"""ShareGroupHeartbeat: a share group member is alive (KIP-932)."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, nested, string, struct, uuid


@message(kind=Kind.REQUEST, api_key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    """Null fields are unchanged since the last heartbeat."""

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
class Assignment:
    topic_partitions: list[ShareGroupHeartbeatTopicPartitions] = array(of=ShareGroupHeartbeatTopicPartitions)


@message(kind=Kind.RESPONSE, api_key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    """The member's epoch, and its assignment when that changed."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = nested(of=Assignment, nullable="0+", default=None)
