"""ElectLeaders: elect leaders of partitions now."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, message, string, struct


@struct
class ElectLeadersTopicPartitions:
    topic: str = string()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """Null partitions ask for all."""

    election_type: int = int8(versions="1+")
    topic_partitions: list[ElectLeadersTopicPartitions] | None = array(of=ElectLeadersTopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60000)


@struct
class ElectLeadersPartitionResult:
    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@struct
class ReplicaElectionResult:
    topic: str = string()
    partition_result: list[ElectLeadersPartitionResult] = array(of=ElectLeadersPartitionResult)


@message(kind=Kind.RESPONSE, api_key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """The outcome for each partition whose leader could change."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16(versions="1+")
    replica_election_results: list[ReplicaElectionResult] = array(of=ReplicaElectionResult)
