"""The share coordinator's state of share partitions: initialize, read, write, delete."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, int64, message, string, struct, uuid


@struct
class InitializeShareGroupStatePartition:
    partition: int = int32()
    state_epoch: int = int32()
    start_offset: int = int64()


@struct
class InitializeStateData:
    topic_id: bytes = uuid()
    partitions: list[InitializeShareGroupStatePartition] = array(of=InitializeShareGroupStatePartition)


@message(kind=Kind.REQUEST, api_key=83, versions="0", flexible="0+")
class InitializeShareGroupStateRequest:
    """Initialize the state of share partitions; sent by the group coordinator to the share coordinator."""

    group_id: str = string()
    topics: list[InitializeStateData] = array(of=InitializeStateData)


@struct
class InitializeShareGroupStatePartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class InitializeStateResult:
    topic_id: bytes = uuid()
    partitions: list[InitializeShareGroupStatePartitionResult] = array(of=InitializeShareGroupStatePartitionResult)


@message(kind=Kind.RESPONSE, api_key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    """The result for each partition."""

    results: list[InitializeStateResult] = array(of=InitializeStateResult)


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
    """Read the state of share partitions; sent by a partition's leader to the share coordinator."""

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
    """The start offset, and state batches from there on."""

    results: list[ReadStateResult] = array(of=ReadStateResult)


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
    """Summarize the state of share partitions; sent by the group coordinator to the share coordinator."""

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
    delivery_complete_count: int = int32(versions="1+", default=-1, ignorable=True)


@struct
class ReadStateSummaryResult:
    topic_id: bytes = uuid()
    partitions: list[ReadShareGroupStateSummaryPartitionResult] = array(of=ReadShareGroupStateSummaryPartitionResult)


@message(kind=Kind.RESPONSE, api_key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    """Version 1 counts completed deliveries."""

    results: list[ReadStateSummaryResult] = array(of=ReadStateSummaryResult)


@struct
class WriteShareGroupStatePartition:
    partition: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(versions="1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = array(of=StateBatch)


@struct
class WriteStateData:
    topic_id: bytes = uuid()
    partitions: list[WriteShareGroupStatePartition] = array(of=WriteShareGroupStatePartition)


@message(kind=Kind.REQUEST, api_key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest:
    """Write the state of share partitions; sent by a partition's leader. Version 1 counts completed deliveries."""

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
    """The result for each partition."""

    results: list[WriteStateResult] = array(of=WriteStateResult)


@struct
class DeleteShareGroupStatePartition:
    partition: int = int32()


@struct
class DeleteStateData:
    topic_id: bytes = uuid()
    partitions: list[DeleteShareGroupStatePartition] = array(of=DeleteShareGroupStatePartition)


@message(kind=Kind.REQUEST, api_key=86, versions="0", flexible="0+")
class DeleteShareGroupStateRequest:
    """Delete the state of share partitions; sent by the group coordinator to the share coordinator."""

    group_id: str = string()
    topics: list[DeleteStateData] = array(of=DeleteStateData)


@struct
class DeleteShareGroupStatePartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class DeleteStateResult:
    topic_id: bytes = uuid()
    partitions: list[DeleteShareGroupStatePartitionResult] = array(of=DeleteShareGroupStatePartitionResult)


@message(kind=Kind.RESPONSE, api_key=86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    """The result for each partition."""

    results: list[DeleteStateResult] = array(of=DeleteStateResult)
