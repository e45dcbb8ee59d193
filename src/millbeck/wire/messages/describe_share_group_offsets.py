"""DescribeShareGroupOffsets: where share groups start in their partitions."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct, uuid


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
    """Null topics ask for all."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(of=DescribeShareGroupOffsetsRequestGroup)


@struct
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int = int32()
    start_offset: int = int64()
    leader_epoch: int = int32()
    lag: int = int64(versions="1+", default=-1)
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
    """Version 1 adds the lag."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(of=DescribeShareGroupOffsetsResponseGroup)
