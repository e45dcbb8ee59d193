"""AlterShareGroupOffsets: set where a share group starts."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct, uuid


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
    """The group must be empty."""

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
    """The outcome for each partition."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(of=AlterShareGroupOffsetsResponseTopic)
