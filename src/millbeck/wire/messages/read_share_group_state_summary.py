"""ReadShareGroupStateSummary: where share partitions start, without the rest of their state."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct, uuid


@struct
class ReadShareGroupStateSummaryPartition:
    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateSummaryData:
    topic_id: bytes = uuid()
    partitions: list[ReadShareGroupStateSummaryPartition] = array(of=ReadShareGroupStateSummaryPartition)


@message(kind=Kind.REQUEST, api_key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest:
    """From the group coordinator to the share coordinator."""

    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(of=ReadStateSummaryData)


@struct
class ReadShareGroupStateSummaryPartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(versions="1+", default=-1)


@struct
class ReadStateSummaryResult:
    topic_id: bytes = uuid()
    partitions: list[ReadShareGroupStateSummaryPartitionResult] = array(of=ReadShareGroupStateSummaryPartitionResult)


@message(kind=Kind.RESPONSE, api_key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    """Version 1 counts completed deliveries."""

    results: list[ReadStateSummaryResult] = array(of=ReadStateSummaryResult)
