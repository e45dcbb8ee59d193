"""DescribeProducers: who has been producing to a partition."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct


@struct
class DescribeProducersTopic:
    name: str = string()
    partition_indexes: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=61, versions="0", flexible="0+")
class DescribeProducersRequest:
    """Leaders answer for the partitions they lead."""

    topics: list[DescribeProducersTopic] = array(of=DescribeProducersTopic)


@struct
class ProducerState:
    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1, doc="-1 when no transaction is open.")


@struct
class DescribeProducersPartition:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: list[ProducerState] = array(of=ProducerState)


@struct
class DescribeProducersTopicResponse:
    name: str = string()
    partitions: list[DescribeProducersPartition] = array(of=DescribeProducersPartition)


@message(kind=Kind.RESPONSE, api_key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    """The producers whose state a partition still holds."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    topics: list[DescribeProducersTopicResponse] = array(of=DescribeProducersTopicResponse)
