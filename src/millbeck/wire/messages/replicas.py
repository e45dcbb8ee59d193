"""Replicas: ISR changes, reassignments, elections, log directories."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, float64, int8, int16, int32, int64, message, string, struct, uuid


@struct
class BrokerState:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@struct
class AlterPartitionPartition:
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(of=int32, versions="2")
    new_isr_with_epochs: list[BrokerState] = array(of=BrokerState, versions="3+")
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


@struct
class AlterPartitionTopic:
    topic_id: bytes = uuid(ignorable=True)
    partitions: list[AlterPartitionPartition] = array(of=AlterPartitionPartition)


@message(kind=Kind.REQUEST, api_key=56, versions="2-3", flexible="0+")
class AlterPartitionRequest:
    """Change the ISR; version 2 has topic ids, version 3 each replica's broker epoch."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[AlterPartitionTopic] = array(of=AlterPartitionTopic)


@struct
class AlterPartitionPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(of=int32)
    leader_recovery_state: int = int8(ignorable=True)
    partition_epoch: int = int32()


@struct
class AlterPartitionTopicResult:
    topic_id: bytes = uuid(ignorable=True)
    partitions: list[AlterPartitionPartitionResult] = array(of=AlterPartitionPartitionResult)


@message(kind=Kind.RESPONSE, api_key=56, versions="2-3", flexible="0+")
class AlterPartitionResponse:
    """The partition state after the change."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    topics: list[AlterPartitionTopicResult] = array(of=AlterPartitionTopicResult)


@struct
class AssignReplicasToDirsPartition:
    partition_index: int = int32()


@struct
class AssignReplicasToDirsTopic:
    topic_id: bytes = uuid()
    partitions: list[AssignReplicasToDirsPartition] = array(of=AssignReplicasToDirsPartition)


@struct
class AssignReplicasToDirsDirectory:
    id: bytes = uuid()
    topics: list[AssignReplicasToDirsTopic] = array(of=AssignReplicasToDirsTopic)


@message(kind=Kind.REQUEST, api_key=73, versions="0", flexible="0+")
class AssignReplicasToDirsRequest:
    """Assign replicas to directories: partitions by directory."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[AssignReplicasToDirsDirectory] = array(of=AssignReplicasToDirsDirectory)


@struct
class AssignReplicasToDirsPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class AssignReplicasToDirsTopicResult:
    topic_id: bytes = uuid()
    partitions: list[AssignReplicasToDirsPartitionResult] = array(of=AssignReplicasToDirsPartitionResult)


@struct
class AssignReplicasToDirsDirectoryResult:
    id: bytes = uuid()
    topics: list[AssignReplicasToDirsTopicResult] = array(of=AssignReplicasToDirsTopicResult)


@message(kind=Kind.RESPONSE, api_key=73, versions="0", flexible="0+")
class AssignReplicasToDirsResponse:
    """The result for each partition."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    directories: list[AssignReplicasToDirsDirectoryResult] = array(of=AssignReplicasToDirsDirectoryResult)


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
    """Reassign partitions; null replicas cancel a reassignment."""

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
    """The result for each partition."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    allow_replication_factor_change: bool = boolean(versions="1+", default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: list[ReassignableTopicResponse] = array(of=ReassignableTopicResponse)


@struct
class ListPartitionReassignmentsTopics:
    name: str = string()
    partition_indexes: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    """List the reassignments in progress; null topics request all."""

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
    """The partitions being reassigned."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: list[OngoingTopicReassignment] = array(of=OngoingTopicReassignment)


@struct
class ElectLeadersTopicPartitions:
    topic: str = string()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """Elect leaders; null partitions request all."""

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
    """The result for each partition."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16(versions="1+")
    replica_election_results: list[ReplicaElectionResult] = array(of=ReplicaElectionResult)


@struct
class AlterReplicaLogDirTopic:
    name: str = string()
    partitions: list[int] = array(of=int32)


@struct
class AlterReplicaLogDir:
    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(of=AlterReplicaLogDirTopic)


@message(kind=Kind.REQUEST, api_key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    """Move replicas between directories: partitions by target directory."""

    dirs: list[AlterReplicaLogDir] = array(of=AlterReplicaLogDir)


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(of=AlterReplicaLogDirPartitionResult)


@message(kind=Kind.RESPONSE, api_key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """The result for each partition."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    results: list[AlterReplicaLogDirTopicResult] = array(of=AlterReplicaLogDirTopicResult)


@struct
class DescribableLogDirTopic:
    topic: str = string()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=35, versions="1-5", flexible="2+")
class DescribeLogDirsRequest:
    """Describe the log directories; null topics request all."""

    topics: list[DescribableLogDirTopic] | None = array(of=DescribableLogDirTopic, nullable="0+")


@struct
class DescribeLogDirsPartition:
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64(doc="Offset lag of a future replica.")
    is_future_key: bool = boolean(doc="Whether this is a future replica, which will replace the current log.")


@struct
class DescribeLogDirsTopic:
    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(of=DescribeLogDirsPartition)


@struct
class DescribeLogDirsResult:
    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(of=DescribeLogDirsTopic)
    total_bytes: int = int64(versions="4+", default=-1, ignorable=True, doc="Total bytes of the volume; -1 if unknown.")
    usable_bytes: int = int64(versions="4+", default=-1, ignorable=True, doc="Free bytes of the volume; -1 if unknown.")
    is_cordoned: bool = boolean(versions="5+", ignorable=True)


@message(kind=Kind.RESPONSE, api_key=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    """The log directories; version 4 has the volume size, version 5 whether the directory is cordoned."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16(versions="3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(of=DescribeLogDirsResult)


UNKNOWN_DIRTY_RATIO = -1.0


@struct
class PartitionWithDirtyRatio:
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64(doc="Offset lag of a future replica.")
    is_future_key: bool = boolean(doc="Whether this is a future replica, which will replace the current log.")
    dirty_ratio: float = float64(
        versions="2+", tag=10_000, default=-1.0, ignorable=True, doc="Dirty ratio of a compacted log; -1 if none."
    )
    offline_reason: str = string(
        versions="2+", tag=10_001, default="", ignorable=True, doc="Why the log is offline; empty if it is online."
    )


@struct
class TopicWithDirtyRatio:
    name: str = string()
    partitions: list[PartitionWithDirtyRatio] = array(of=PartitionWithDirtyRatio)


@struct
class LogDirWithDirtyRatio:
    error_code: int = int16()
    log_dir: str = string()
    topics: list[TopicWithDirtyRatio] = array(of=TopicWithDirtyRatio)
    total_bytes: int = int64(versions="4+", default=-1, ignorable=True, doc="Total bytes of the volume; -1 if unknown.")
    usable_bytes: int = int64(versions="4+", default=-1, ignorable=True, doc="Free bytes of the volume; -1 if unknown.")
    is_cordoned: bool = boolean(versions="5+", ignorable=True)
    offline_reason: str = string(
        versions="2+", tag=10_001, default="", ignorable=True, doc="Why the directory is offline; empty if online."
    )


@message(kind=Kind.RESPONSE, api_key=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponseWithDirtyRatio:
    """`DescribeLogDirsResponse` with additional fields."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16(versions="3+", ignorable=True)
    results: list[LogDirWithDirtyRatio] = array(of=LogDirWithDirtyRatio)
