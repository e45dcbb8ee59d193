"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, int64, message, string, struct, uuid


@struct
class OffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="6+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+", doc="Metadata set by the client.")


@struct
class OffsetCommitRequestTopic:
    name: str = string(versions="0-9", ignorable=True)
    topic_id: bytes = uuid(versions="10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(of=OffsetCommitRequestPartition)


@message(kind=Kind.REQUEST, api_key=8, versions="2-10", flexible="8+")
class OffsetCommitRequest:
    """Commit offsets; version 9 supports the consumer protocol (KIP-848), version 10 has topic ids."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1, ignorable=True, doc="-1 when not committed by a member.")
    member_id: str = string(ignorable=True)
    group_instance_id: str | None = string(
        versions="7+", nullable="0+", default=None, doc="Instance id of a static member."
    )
    retention_time_ms: int = int64(
        versions="2-4", default=-1, ignorable=True, doc="Ignored: the broker's retention applies."
    )
    topics: list[OffsetCommitRequestTopic] = array(of=OffsetCommitRequestTopic)


@struct
class OffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic:
    name: str = string(versions="0-9", ignorable=True)
    topic_id: bytes = uuid(versions="10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(of=OffsetCommitResponsePartition)


@message(kind=Kind.RESPONSE, api_key=8, versions="2-10", flexible="8+")
class OffsetCommitResponse:
    """The result for each partition."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True, doc="Throttle time due to a quota violation.")
    topics: list[OffsetCommitResponseTopic] = array(of=OffsetCommitResponseTopic)


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
    """Fetch committed offsets of one group up to version 7, any number from version 8. Null topics request all."""

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
    committed_leader_epoch: int = int32(default=-1, ignorable=True)
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
    """The committed offsets; -1 without a commit. A group that does not exist is not an error."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True, doc="Throttle time due to a quota violation.")
    topics: list[OffsetFetchResponseTopic] = array(of=OffsetFetchResponseTopic, versions="0-7")
    error_code: int = int16(versions="2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(of=OffsetFetchResponseGroup, versions="8+")


@struct
class OffsetDeleteRequestPartition:
    partition_index: int = int32()


@struct
class OffsetDeleteRequestTopic:
    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(of=OffsetDeleteRequestPartition)


@message(kind=Kind.REQUEST, api_key=47, versions="0")
class OffsetDeleteRequest:
    """Delete offsets of topics the group is not subscribed to."""

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
    """The result for each partition."""

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True, doc="Throttle time due to a quota violation.")
    topics: list[OffsetDeleteResponseTopic] = array(of=OffsetDeleteResponseTopic)
