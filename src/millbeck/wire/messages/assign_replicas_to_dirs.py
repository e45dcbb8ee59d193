"""AssignReplicasToDirs: a broker tells in which directory its replicas are."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, struct, uuid


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
    """Partitions by directory."""

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
    """The outcome for each partition."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    directories: list[AssignReplicasToDirsDirectoryResult] = array(of=AssignReplicasToDirsDirectoryResult)
