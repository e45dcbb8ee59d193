"""Produce: append record batches. `millbeck.wire.fast_produce` holds the codecs of the hot path."""

from __future__ import annotations

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
    """Append one batch to each partition named.

    Version 12 may add partitions to a transaction on the way (KIP-890), version 13 names topics by id.
    """

    transactional_id: str | None = string(nullable="0+", default=None)
    acks: int = int16(doc="0 no answer, 1 once the leader has it, -1 once all in-sync replicas have.")
    timeout_ms: int = int32(doc="How long to wait for the replicas.")
    topic_data: list[TopicProduceData] = array(of=TopicProduceData)


@struct
class BatchIndexAndErrorMessage:
    batch_index: int = int32()
    batch_index_error_message: str | None = string(nullable="0+", default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


@struct
class PartitionProduceResponse:
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(default=-1, doc="-1 unless the topic stamps records itself.")
    log_start_offset: int = int64(versions="5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        of=BatchIndexAndErrorMessage, versions="8+", ignorable=True, doc="The records for which the batch was refused."
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


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(kind=Kind.RESPONSE, api_key=0, versions="3-13", flexible="9+")
class ProduceResponse:
    """Where each batch landed. There is no response to a request with acks 0."""

    responses: list[TopicProduceResponse] = array(of=TopicProduceResponse)
    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="10+", tag=0, doc="Where to find the leaders named above (KIP-951)."
    )
