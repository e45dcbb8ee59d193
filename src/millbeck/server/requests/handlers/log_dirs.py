"""DescribeLogDirs: the replicas, sizes and free space of each log directory.

Behaviour
- Null topics mean all. A directory that failed is listed with KAFKA_STORAGE_ERROR and nothing else.
- Millbeck's own tools get tagged fields that other clients do not: the dirty ratio of compacted logs, and why logs and
  directories are offline. For them a log that could not be opened or created is listed too, with size 0.
Versions
- 3: a top-level error. 4: total and usable bytes of the volume. 5: whether the directory is cordoned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed, KafkaStorageError
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.network.route import Need, handles
from millbeck.wire import codec
from millbeck.wire.messages.replicas import (
    UNKNOWN_DIRTY_RATIO,
    DescribeLogDirsRequest,
    DescribeLogDirsResponseWithDirtyRatio,
    LogDirWithDirtyRatio,
    PartitionWithDirtyRatio,
    TopicWithDirtyRatio,
)

if TYPE_CHECKING:
    from millbeck.kernel.ids import TopicPartition
    from millbeck.server.broker import Broker
    from millbeck.server.network.call import Call
    from millbeck.storage.directory import LogDirectory
    from millbeck.storage.log import Log

OWN_SOFTWARE: Final = "millbeck"


@handles(35, needs=[Need(Operation.DESCRIBE, ResourceType.CLUSTER)])
async def handle_describe_log_dirs(call: Call, request: DescribeLogDirsRequest) -> None:
    if not call.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    tells_more = call.connection.client_software[0] == OWN_SOFTWARE
    results = [await _describe(call, directory, wanted, tells_more) for directory in call.broker.logs.directories]
    body = codec.encoder(DescribeLogDirsResponseWithDirtyRatio, call.version)(
        DescribeLogDirsResponseWithDirtyRatio(results=results)
    )
    call.reply_encoded(body)


async def _describe(
    call: Call, directory: LogDirectory, wanted: set[tuple[str, int]] | None, tells_more: bool
) -> LogDirWithDirtyRatio:
    if directory.offline_reason is not None:
        reason = directory.offline_reason if tells_more else ""
        return LogDirWithDirtyRatio(KafkaStorageError.code, directory.path, offline_reason=reason)
    result = LogDirWithDirtyRatio(0, directory.path)
    topics: dict[str, TopicWithDirtyRatio] = {}
    slices = TimeSlices(call.broker.environment.clock)
    for name, log in sorted(directory.logs.items()):
        await slices.yield_to_loop()
        if name.topic not in call.broker.topics.by_name or (wanted is not None and name not in wanted):
            continue
        topic = topics.setdefault(name.topic, TopicWithDirtyRatio(name.topic))
        ratio = _dirty_ratio(call.broker, name) if tells_more else UNKNOWN_DIRTY_RATIO
        reason = log.offline_reason or "" if tells_more else ""
        topic.partitions.append(PartitionWithDirtyRatio(name.partition, log.size_bytes, 0, False, ratio, reason))
    if tells_more:
        for name, reason in call.broker.logs.unusable_in(directory):
            if wanted is None or name in wanted:
                topic = topics.setdefault(name.topic, TopicWithDirtyRatio(name.topic))
                topic.partitions.append(
                    PartitionWithDirtyRatio(name.partition, 0, 0, False, UNKNOWN_DIRTY_RATIO, reason)
                )
    for name, future in sorted(directory.futures.items()):
        if wanted is None or name in wanted:
            topic = topics.setdefault(name.topic, TopicWithDirtyRatio(name.topic))
            lag = _lag_of(call.broker, name, future)
            topic.partitions.append(
                PartitionWithDirtyRatio(name.partition, future.size_bytes, lag, True, UNKNOWN_DIRTY_RATIO)
            )
    result.topics = list(topics.values())
    files = call.broker.environment.files
    try:
        result.total_bytes = await call.broker.in_thread(files.total_bytes, directory.path)
        result.usable_bytes = await call.broker.in_thread(files.free_bytes, directory.path)
    except OSError:
        return LogDirWithDirtyRatio(KafkaStorageError.code, directory.path)
    return result


def _lag_of(broker: Broker, name: TopicPartition, future: Log) -> int:
    """The offset lag of a future log (a replica being moved to this directory)."""
    try:
        return max(0, broker.topics.partition(name.topic, name.partition).log.end_offset - future.end_offset)
    except ApiError:
        return 0


def _dirty_ratio(broker: Broker, name: TopicPartition) -> float:
    try:
        surveyed = broker.cleaner.survey(broker.topics.partition(name.topic, name.partition))
    except (ApiError, OSError):
        return UNKNOWN_DIRTY_RATIO
    return UNKNOWN_DIRTY_RATIO if surveyed is None else surveyed.dirty_ratio
