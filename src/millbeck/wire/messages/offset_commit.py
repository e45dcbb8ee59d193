"""OffsetCommit: store how far a group has read."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct, uuid


@struct
class OffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="6+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+", doc="Free text of the client.")


@struct
class OffsetCommitRequestTopic:
    name: str = string(versions="0-9", ignorable=True)
    topic_id: bytes = uuid(versions="10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(of=OffsetCommitRequestPartition)


@message(kind=Kind.REQUEST, api_key=8, versions="2-10", flexible="8+")
class OffsetCommitRequest:
    """Version 9 serves the consumer protocol of KIP-848, version 10 names topics by id."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1, doc="-1 when not committed by a member.")
    member_id: str = string()
    group_instance_id: str | None = string(
        versions="7+", nullable="0+", default=None, doc="The name of a static member."
    )
    retention_time_ms: int = int64(
        versions="2-4", default=-1, ignorable=True, doc="Ignored: how long offsets stay is the broker's setting."
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
    """The outcome for each partition."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True, doc="How long a quota holds this client back.")
    topics: list[OffsetCommitResponseTopic] = array(of=OffsetCommitResponseTopic)
