"""DescribeLogDirs: what each log directory holds and how much room is left.

Behaviour
- Null topics ask for all. A directory that failed is listed with KAFKA_STORAGE_ERROR and nothing else.
Versions
- 3: an error for the whole. 4: the volume's size. 5: whether the directory is cordoned.
"""

from __future__ import annotations

from millbeck.kernel.errors import ClusterAuthorizationFailed, KafkaStorageError
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.storage.directory import LogDirectory
from millbeck.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


@handles(35)
async def handle_describe_log_dirs(call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not call.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    results = [await _describe(call, directory, wanted) for directory in call.broker.logs.directories]
    return DescribeLogDirsResponse(results=results)


async def _describe(call: Call, directory: LogDirectory, wanted: set[tuple[str, int]] | None) -> DescribeLogDirsResult:
    if directory.offline_reason is not None:
        return DescribeLogDirsResult(KafkaStorageError.code, directory.path)
    result = DescribeLogDirsResult(0, directory.path)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for name, log in sorted(directory.logs.items()):
        if name.topic not in call.broker.topics.by_name or (wanted is not None and name not in wanted):
            continue
        topic = topics.setdefault(name.topic, DescribeLogDirsTopic(name.topic))
        topic.partitions.append(DescribeLogDirsPartition(name.partition, log.size_bytes, 0, False))
    result.topics = list(topics.values())
    files = call.broker.environment.files
    try:
        result.total_bytes = await call.broker.in_thread(files.total_bytes, directory.path)
        result.usable_bytes = await call.broker.in_thread(files.free_bytes, directory.path)
    except OSError:
        return DescribeLogDirsResult(KafkaStorageError.code, directory.path)
    return result
