"""AlterPartitionReassignments: move partitions to other brokers."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, message, string, struct


@struct
class ReassignablePartition:
    partition_index: int = int32()
    replicas: list[int] | None = array(of=int32, nullable="0+", default=None)


@struct
class ReassignableTopic:
    name: str = string()
    partitions: list[ReassignablePartition] = array(of=ReassignablePartition)


@message(kind=Kind.REQUEST, api_key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    """Null replicas cancel a move under way."""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean(versions="1+", default=True)
    topics: list[ReassignableTopic] = array(of=ReassignableTopic)


@struct
class ReassignablePartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@struct
class ReassignableTopicResponse:
    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(of=ReassignablePartitionResponse)


@message(kind=Kind.RESPONSE, api_key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """The outcome for each partition."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    allow_replication_factor_change: bool = boolean(versions="1+", default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: list[ReassignableTopicResponse] = array(of=ReassignableTopicResponse)
