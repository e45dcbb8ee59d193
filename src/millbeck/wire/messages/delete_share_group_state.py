"""DeleteShareGroupState: forget the state of share partitions."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct, uuid


@struct
class DeleteShareGroupStatePartition:
    partition: int = int32()


@struct
class DeleteStateData:
    topic_id: bytes = uuid()
    partitions: list[DeleteShareGroupStatePartition] = array(of=DeleteShareGroupStatePartition)


@message(kind=Kind.REQUEST, api_key=86, versions="0", flexible="0+")
class DeleteShareGroupStateRequest:
    """From the group coordinator to the share coordinator."""

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
    """The outcome for each partition."""

    results: list[DeleteStateResult] = array(of=DeleteStateResult)
