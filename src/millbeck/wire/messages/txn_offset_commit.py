"""TxnOffsetCommit: commit a group's offsets as part of a transaction."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="2+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


@struct
class TxnOffsetCommitRequestTopic:
    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(of=TxnOffsetCommitRequestPartition)


@message(kind=Kind.REQUEST, api_key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    """Version 3 brings the member's identity, version 5 adds the offsets to the transaction on the way."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(versions="3+", default=-1)
    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(
        versions="3+", nullable="0+", default=None, doc="The name of a static member."
    )
    topics: list[TxnOffsetCommitRequestTopic] = array(of=TxnOffsetCommitRequestTopic)


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class TxnOffsetCommitResponseTopic:
    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(of=TxnOffsetCommitResponsePartition)


@message(kind=Kind.RESPONSE, api_key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    """The outcome for each partition."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    topics: list[TxnOffsetCommitResponseTopic] = array(of=TxnOffsetCommitResponseTopic)
