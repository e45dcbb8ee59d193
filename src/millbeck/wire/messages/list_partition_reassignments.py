"""ListPartitionReassignments: moves under way."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct


@struct
class ListPartitionReassignmentsTopics:
    name: str = string()
    partition_indexes: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    """Null topics ask for all."""

    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        of=ListPartitionReassignmentsTopics, nullable="0+", default=None
    )


@struct
class OngoingPartitionReassignment:
    partition_index: int = int32()
    replicas: list[int] = array(of=int32)
    adding_replicas: list[int] = array(of=int32)
    removing_replicas: list[int] = array(of=int32)


@struct
class OngoingTopicReassignment:
    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(of=OngoingPartitionReassignment)


@message(kind=Kind.RESPONSE, api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """Only partitions that are moving."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: list[OngoingTopicReassignment] = array(of=OngoingTopicReassignment)
