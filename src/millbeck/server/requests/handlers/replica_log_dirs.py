"""AlterReplicaLogDirs: move replicas between the log directories of this node.

Behaviour
- A successful response means that the move has started or that there is nothing to move; DescribeLogDirs shows its
  progress.
- A directory that is not in ``log.dirs`` is LOG_DIR_NOT_FOUND, a partition without a replica here
  REPLICA_NOT_AVAILABLE, an offline directory or replica KAFKA_STORAGE_ERROR.
Versions
- 1 and 2 differ only in their encoding.
"""

from __future__ import annotations

from collections.abc import Callable

from millbeck.kernel.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    NotLeaderOrFollower,
    ReplicaNotAvailable,
    UnknownTopicOrPartition,
)
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.server.requests.audited import audited
from millbeck.wire.messages.replicas import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def error_reply(
    request: AlterReplicaLogDirsRequest | None, version: int, error: ApiError
) -> AlterReplicaLogDirsResponse | None:
    return None if request is None else _answer(request, lambda path, topic, index: error.code)


@handles(34, needs=[Need(Operation.ALTER, ResourceType.CLUSTER)], error_reply=error_reply)
def handle_alter_replica_log_dirs(call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    return _answer(request, lambda path, topic, index: _begin(call, path, topic, index))


def _answer(
    request: AlterReplicaLogDirsRequest, outcome: Callable[[str, str, int], int]
) -> AlterReplicaLogDirsResponse:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        for asked in directory.topics:
            topic = topics.setdefault(asked.name, AlterReplicaLogDirTopicResult(topic_name=asked.name))
            topic.partitions += [
                AlterReplicaLogDirPartitionResult(index, outcome(directory.path, asked.name, index))
                for index in asked.partitions
            ]
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def _begin(call: Call, path: str, topic: str, index: int) -> int:
    try:
        call.broker.replication.moves.begin(call.broker.topics.partition(topic, index), path)
        audited(call, "replica", f"{topic}-{index}", after={"directory": path})
    except (UnknownTopicOrPartition, NotLeaderOrFollower):
        return ReplicaNotAvailable.code
    except ApiError as error:
        return error.code
    return 0
