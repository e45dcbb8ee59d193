"""ReadShareGroupState: load the state of share partitions."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, int64, message, string, struct, uuid


@struct
class ReadShareGroupStatePartition:
    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateData:
    topic_id: bytes = uuid()
    partitions: list[ReadShareGroupStatePartition] = array(of=ReadShareGroupStatePartition)


@message(kind=Kind.REQUEST, api_key=84, versions="0", flexible="0+")
class ReadShareGroupStateRequest:
    """From a partition's leader to the share coordinator."""

    group_id: str = string()
    topics: list[ReadStateData] = array(of=ReadStateData)


@struct
class StateBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@struct
class ReadShareGroupStatePartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    start_offset: int = int64()
    state_batches: list[StateBatch] = array(of=StateBatch)


@struct
class ReadStateResult:
    topic_id: bytes = uuid()
    partitions: list[ReadShareGroupStatePartitionResult] = array(of=ReadShareGroupStatePartitionResult)


@message(kind=Kind.RESPONSE, api_key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse:
    """Start offset and the state of what lies after it."""

    results: list[ReadStateResult] = array(of=ReadStateResult)
