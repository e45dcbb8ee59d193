"""ShareAcknowledge: say what became of acquired records."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, int64, message, nested, string, struct, uuid


@struct
class AcknowledgementBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: list[int] = array(of=int8)


@struct
class AcknowledgePartition:
    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(of=AcknowledgementBatch)


@struct
class AcknowledgeTopic:
    topic_id: bytes = uuid()
    partitions: list[AcknowledgePartition] = array(of=AcknowledgePartition)


@message(kind=Kind.REQUEST, api_key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest:
    """Version 2 can renew the acquisition."""

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean(versions="2+")
    topics: list[AcknowledgeTopic] = array(of=AcknowledgeTopic)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class ShareAcknowledgePartitionResult:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = nested(of=LeaderIdAndEpoch)


@struct
class ShareAcknowledgeTopicResponse:
    topic_id: bytes = uuid()
    partitions: list[ShareAcknowledgePartitionResult] = array(of=ShareAcknowledgePartitionResult)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(kind=Kind.RESPONSE, api_key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    """The outcome for each partition. ``current_leader`` is no tagged field here: -1 when unknown."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32(versions="2+")
    responses: list[ShareAcknowledgeTopicResponse] = array(of=ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(of=NodeEndpoint, doc="Where to find the leaders named above (KIP-951).")
