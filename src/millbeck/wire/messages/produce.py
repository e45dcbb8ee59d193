"""Produce messages. `millbeck.wire.fast_produce` has the codecs of the hot path."""

from __future__ import annotations

from millbeck.wire.messages.shared import LeaderIdAndEpoch, NodeEndpoint
from millbeck.wire.schema import Kind, array, int16, int32, int64, message, nested, records, string, struct, uuid


@struct
class PartitionProduceData:
    index: int = int32()
    records: bytes | None = records(nullable="0+", doc="One batch; a partition has exactly one.")


@struct
class TopicProduceData:
    name: str = string(versions="0-12", ignorable=True)
    topic_id: bytes = uuid(versions="13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(of=PartitionProduceData)


@message(kind=Kind.REQUEST, api_key=0, versions="3-13", flexible="9+")
class ProduceRequest:
    """Append one batch to each partition.

    Version 12 may implicitly add partitions to a transaction (KIP-890), version 13 has topic ids.
    """

    transactional_id: str | None = string(nullable="0+", default=None)
    acks: int = int16(doc="0 no response, 1 written by the leader, -1 by all in-sync replicas.")
    timeout_ms: int = int32(doc="Maximum wait for replication.")
    topic_data: list[TopicProduceData] = array(of=TopicProduceData)


@struct
class BatchIndexAndErrorMessage:
    batch_index: int = int32()
    batch_index_error_message: str | None = string(nullable="0+", default=None)


@struct
class PartitionProduceResponse:
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(default=-1, ignorable=True, doc="-1 unless the topic uses log append time.")
    log_start_offset: int = int64(versions="5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        of=BatchIndexAndErrorMessage, versions="8+", ignorable=True, doc="The records that made the batch invalid."
    )
    error_message: str | None = string(versions="8+", nullable="0+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = nested(
        of=LeaderIdAndEpoch, versions="10+", tag=0, doc="Set when this broker does not lead the partition (KIP-951)."
    )


@struct
class TopicProduceResponse:
    name: str = string(versions="0-12", ignorable=True)
    topic_id: bytes = uuid(versions="13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(of=PartitionProduceResponse)


@message(kind=Kind.RESPONSE, api_key=0, versions="3-13", flexible="9+")
class ProduceResponse:
    """The offset of each batch. There is no response to a request with acks 0."""

    responses: list[TopicProduceResponse] = array(of=TopicProduceResponse)
    throttle_time_ms: int = int32(ignorable=True, doc="Throttle time due to a quota violation.")
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="10+", tag=0, doc="Endpoints of the leaders named above (KIP-951)."
    )
