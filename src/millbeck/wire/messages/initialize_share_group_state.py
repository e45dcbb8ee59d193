"""InitializeShareGroupState: begin the state of share partitions."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct, uuid


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
    """From the group coordinator to the share coordinator."""

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
    """The outcome for each partition."""

    results: list[InitializeStateResult] = array(of=InitializeStateResult)
