"""AlterReplicaLogDirs: move replicas between the directories of one broker."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct


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
    """Partitions by the directory they shall be in."""

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
    """The outcome for each partition."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    results: list[AlterReplicaLogDirTopicResult] = array(of=AlterReplicaLogDirTopicResult)
