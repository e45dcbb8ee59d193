"""OffsetDelete: forget a group's committed offsets. Never flexible."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct


@struct
class OffsetDeleteRequestPartition:
    partition_index: int = int32()


@struct
class OffsetDeleteRequestTopic:
    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(of=OffsetDeleteRequestPartition)


@message(kind=Kind.REQUEST, api_key=47, versions="0")
class OffsetDeleteRequest:
    """Partitions of topics the group no longer subscribes to."""

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(of=OffsetDeleteRequestTopic)


@struct
class OffsetDeleteResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetDeleteResponseTopic:
    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(of=OffsetDeleteResponsePartition)


@message(kind=Kind.RESPONSE, api_key=47, versions="0")
class OffsetDeleteResponse:
    """The outcome for each partition."""

    error_code: int = int16()
    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    topics: list[OffsetDeleteResponseTopic] = array(of=OffsetDeleteResponseTopic)
