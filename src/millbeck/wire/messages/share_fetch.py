"""Records of share groups: ShareFetch, ShareAcknowledge."""

from __future__ import annotations

from millbeck.wire.messages.shared import NodeEndpoint
from millbeck.wire.schema import (
    Kind,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    records,
    string,
    struct,
    uuid,
)


@struct
class AcknowledgementBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: list[int] = array(of=int8)


@struct
class ShareFetchPartition:
    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(of=AcknowledgementBatch)


@struct
class ShareFetchTopic:
    topic_id: bytes = uuid()
    partitions: list[ShareFetchPartition] = array(of=ShareFetchPartition)


@struct
class ForgottenShareTopic:
    topic_id: bytes = uuid()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=78, versions="1-2", flexible="0+")
class ShareFetchRequest:
    """Fetch and acquire records in a session, like Fetch. Version 2 adds acquire modes and lock renewal."""

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=0x7FFFFFFF)
    max_records: int = int32()
    batch_size: int = int32()
    share_acquire_mode: int = int8(versions="2+", ignorable=True)
    is_renew_ack: bool = boolean(versions="2+")
    topics: list[ShareFetchTopic] = array(of=ShareFetchTopic)
    forgotten_topics_data: list[ForgottenShareTopic] = array(of=ForgottenShareTopic)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class AcquiredRecords:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_count: int = int16()


@struct
class ShareFetchPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acknowledge_error_code: int = int16()
    acknowledge_error_message: str | None = string(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = nested(of=LeaderIdAndEpoch)
    records: bytes = records()
    acquired_records: list[AcquiredRecords] = array(of=AcquiredRecords)


@struct
class ShareFetchableTopicResponse:
    topic_id: bytes = uuid()
    partitions: list[ShareFetchPartitionResult] = array(of=ShareFetchPartitionResult)


@message(kind=Kind.RESPONSE, api_key=78, versions="1-2", flexible="0+")
class ShareFetchResponse:
    """Records, and which of them were acquired. ``current_leader`` is not a tagged field here: -1 if unknown."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32()
    responses: list[ShareFetchableTopicResponse] = array(of=ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(of=NodeEndpoint, doc="Endpoints of the leaders named above (KIP-951).")


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
    """Acknowledge records; version 2 can renew acquisition locks."""

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean(versions="2+")
    topics: list[AcknowledgeTopic] = array(of=AcknowledgeTopic)


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


@message(kind=Kind.RESPONSE, api_key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    """The result for each partition. ``current_leader`` is not a tagged field here: -1 if unknown."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32(versions="2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array(of=ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(of=NodeEndpoint, doc="Endpoints of the leaders named above (KIP-951).")
