"""OffsetFetch: how far groups have read."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, int64, message, string, struct, uuid


@struct
class OffsetFetchRequestTopic:
    name: str = string()
    partition_indexes: list[int] = array(of=int32)


@struct
class OffsetFetchRequestTopics:
    name: str = string(versions="8-9", ignorable=True)
    topic_id: bytes = uuid(versions="10+", ignorable=True)
    partition_indexes: list[int] = array(of=int32)


@struct
class OffsetFetchRequestGroup:
    group_id: str = string()
    member_id: str | None = string(versions="9+", nullable="0+", default=None, ignorable=True)
    member_epoch: int = int32(versions="9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(of=OffsetFetchRequestTopics, nullable="0+")


@message(kind=Kind.REQUEST, api_key=9, versions="1-10", flexible="6+")
class OffsetFetchRequest:
    """One group up to version 7, any number from version 8. Null topics ask for all of a group's partitions."""

    group_id: str = string(versions="0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(of=OffsetFetchRequestTopic, versions="0-7", nullable="2+")
    groups: list[OffsetFetchRequestGroup] = array(of=OffsetFetchRequestGroup, versions="8+")
    require_stable: bool = boolean(versions="7+", doc="Wait for pending transactional commits.")


@struct
class OffsetFetchResponsePartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="5+", default=-1, ignorable=True)
    metadata: str | None = string(nullable="0+")
    error_code: int = int16()


@struct
class OffsetFetchResponseTopic:
    name: str = string()
    partitions: list[OffsetFetchResponsePartition] = array(of=OffsetFetchResponsePartition)


@struct
class OffsetFetchResponsePartitions:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(default=-1)
    metadata: str | None = string(nullable="0+")
    error_code: int = int16()


@struct
class OffsetFetchResponseTopics:
    name: str = string(versions="8-9", ignorable=True)
    topic_id: bytes = uuid(versions="10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(of=OffsetFetchResponsePartitions)


@struct
class OffsetFetchResponseGroup:
    group_id: str = string()
    topics: list[OffsetFetchResponseTopics] = array(of=OffsetFetchResponseTopics)
    error_code: int = int16()


@message(kind=Kind.RESPONSE, api_key=9, versions="1-10", flexible="6+")
class OffsetFetchResponse:
    """An offset of -1 means that none was committed; that a group does not exist is no error."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True, doc="How long a quota holds this client back.")
    topics: list[OffsetFetchResponseTopic] = array(of=OffsetFetchResponseTopic, versions="0-7")
    error_code: int = int16(versions="2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(of=OffsetFetchResponseGroup, versions="8+")
