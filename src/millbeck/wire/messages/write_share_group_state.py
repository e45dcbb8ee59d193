"""WriteShareGroupState: store the state of share partitions."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, int64, message, string, struct, uuid


@struct
class StateBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@struct
class WriteShareGroupStatePartition:
    partition: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(versions="1+", default=-1)
    state_batches: list[StateBatch] = array(of=StateBatch)


@struct
class WriteStateData:
    topic_id: bytes = uuid()
    partitions: list[WriteShareGroupStatePartition] = array(of=WriteShareGroupStatePartition)


@message(kind=Kind.REQUEST, api_key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest:
    """From a partition's leader to the share coordinator. Version 1 counts completed deliveries."""

    group_id: str = string()
    topics: list[WriteStateData] = array(of=WriteStateData)


@struct
class WriteShareGroupStatePartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class WriteStateResult:
    topic_id: bytes = uuid()
    partitions: list[WriteShareGroupStatePartitionResult] = array(of=WriteShareGroupStatePartitionResult)


@message(kind=Kind.RESPONSE, api_key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse:
    """The outcome for each partition."""

    results: list[WriteStateResult] = array(of=WriteStateResult)
