"""DescribeLogDirs: what each log directory holds and how much room is left.

Behaviour
- Null topics ask for all. A directory that failed is listed with KAFKA_STORAGE_ERROR and nothing else.
- Millbeck's own tools are told how dirty compacted logs are, in a tagged field that nobody else gets.
Versions
- 3: an error for the whole. 4: the volume's size. 5: whether the directory is cordoned.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed, KafkaStorageError
from millbeck.kernel.ids import TopicPartition
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.broker import Broker
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.server.turns import Turns
from millbeck.storage.directory import LogDirectory
from millbeck.storage.log import Log
from millbeck.wire import codec
from millbeck.wire.framing import response_prefix
from millbeck.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from millbeck.wire.messages.log_dirs_with_dirt import (
    UNKNOWN_RATIO,
    LogDirsWithDirt,
    LogDirWithDirt,
    LogWithDirt,
    TopicWithDirt,
)

OWN_SOFTWARE: Final = "millbeck"


@handles(35)
async def handle_describe_log_dirs(call: Call, request: DescribeLogDirsRequest) -> None:
    if not call.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    tells_dirt = call.connection.client_software[0] == OWN_SOFTWARE
    results = [await _describe(call, directory, wanted, tells_dirt) for directory in call.broker.logs.directories]
    body = codec.encoder(LogDirsWithDirt, call.version)(LogDirsWithDirt(results=results))
    call.complete((response_prefix(call.handler.api_key, call.version, call.correlation_id, len(body)), body))


async def _describe(
    call: Call, directory: LogDirectory, wanted: set[tuple[str, int]] | None, tells_dirt: bool
) -> LogDirWithDirt:
    if directory.offline_reason is not None:
        return LogDirWithDirt(KafkaStorageError.code, directory.path)
    result = LogDirWithDirt(0, directory.path)
    topics: dict[str, TopicWithDirt] = {}
    turns = Turns(call.broker.environment.clock)
    for name, log in sorted(directory.logs.items()):
        await turns.give_way()
        if name.topic not in call.broker.topics.by_name or (wanted is not None and name not in wanted):
            continue
        topic = topics.setdefault(name.topic, TopicWithDirt(name.topic))
        ratio = _dirty_ratio(call.broker, name) if tells_dirt else UNKNOWN_RATIO
        topic.partitions.append(LogWithDirt(name.partition, log.size_bytes, 0, False, ratio))
    for name, future in sorted(directory.futures.items()):
        if wanted is None or name in wanted:
            topic = topics.setdefault(name.topic, TopicWithDirt(name.topic))
            lag = _lag_of(call.broker, name, future)
            topic.partitions.append(LogWithDirt(name.partition, future.size_bytes, lag, True, UNKNOWN_RATIO))
    result.topics = list(topics.values())
    files = call.broker.environment.files
    try:
        result.total_bytes = await call.broker.in_thread(files.total_bytes, directory.path)
        result.usable_bytes = await call.broker.in_thread(files.free_bytes, directory.path)
    except OSError:
        return LogDirWithDirt(KafkaStorageError.code, directory.path)
    return result


def _lag_of(broker: Broker, name: TopicPartition, future: Log) -> int:
    """How much a log on its way here has still to copy."""
    try:
        return max(0, broker.topics.partition(name.topic, name.partition).log.end_offset - future.end_offset)
    except ApiError:
        return 0


def _dirty_ratio(broker: Broker, name: TopicPartition) -> float:
    try:
        surveyed = broker.cleaner.survey(broker.topics.partition(name.topic, name.partition))
    except (ApiError, OSError):
        return UNKNOWN_RATIO
    return UNKNOWN_RATIO if surveyed is None else surveyed.dirty_ratio
