"""DescribeTopicPartitions: topics page by page, with their eligible leader replicas (KIP-966).

Behaviour
- No topics means all; the response is sorted by name, from the cursor on. Topics the client may not describe are left
  out when all were requested, and refused when named.
- A page holds at most ``max.request.partition.size.limit`` partitions (and the request's own limit); the cursor says
  where the next page begins.
Versions
- 0 only.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import ApiError, InvalidRequest, TopicAuthorizationFailed, UnknownTopicOrPartition
from millbeck.kernel.names import check_topic_name, is_internal_topic
from millbeck.metadata.image import TopicImage
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

LEADER_NOT_AVAILABLE: Final = 5


def error_reply(
    request: DescribeTopicPartitionsRequest | None, version: int, error: ApiError
) -> DescribeTopicPartitionsResponse | None:
    if request is None:
        return None
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(error.code, topic.name) for topic in request.topics]
    )


@handles(
    75,
    needs=[
        Need(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            denied="TOPIC_AUTHORIZATION_FAILED; topics that were not named are left out",
        )
    ],
    error_reply=error_reply,
)
def handle_describe_topic_partitions(
    call: Call, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        raise InvalidRequest("the cursor's partition must not be negative")
    asks_for_all = not request.topics
    by_name = call.broker.image.topics.by_name
    names = sorted(by_name) if asks_for_all else sorted({topic.name for topic in request.topics})
    limit = min(
        call.broker.config.topic_defaults.max_request_partition_size_limit, max(request.response_partition_limit, 1)
    )
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if cursor is not None and name < cursor.topic_name:
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        if not call.may(Operation.DESCRIBE, ResourceType.TOPIC, name, is_filter=asks_for_all):
            if not asks_for_all:
                response.topics.append(_refused(name, TopicAuthorizationFailed()))
            continue
        topic = by_name.get(name)
        if topic is None:
            missing = _refused(name, _missing(name))
            missing.is_internal = is_internal_topic(name)
            missing.topic_authorized_operations = call.authorized_operations(ResourceType.TOPIC, name)
            response.topics.append(missing)
            continue
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        if limit <= 0:
            response.next_cursor = Cursor(name, first)
            break
        response.topics.append(_topic(call, topic, indexes[:limit]))
        if len(indexes) > limit:
            response.next_cursor = Cursor(name, indexes[limit])
            break
        limit -= len(indexes)
    return response


def _missing(name: str) -> ApiError:
    try:
        check_topic_name(name)
    except ApiError as error:
        return error
    return UnknownTopicOrPartition()


def _refused(name: str, error: ApiError) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error.code, name)


def _topic(call: Call, topic: TopicImage, indexes: list[int]) -> DescribeTopicPartitionsResponseTopic:
    answer = DescribeTopicPartitionsResponseTopic(0, topic.name, topic.topic_id, is_internal_topic(topic.name))
    for index in indexes:
        partition = topic.partitions[index]
        answer.partitions.append(
            DescribeTopicPartitionsResponsePartition(
                0 if partition.has_leader else LEADER_NOT_AVAILABLE,
                index,
                partition.leader,
                partition.leader_epoch,
                list(partition.replicas),
                list(partition.isr),
                list(partition.eligible_leader_replicas),
                list(partition.last_known_elr),
                call.broker.offline_replicas(topic.name, index, partition),
            )
        )
    answer.topic_authorized_operations = call.authorized_operations(ResourceType.TOPIC, topic.name)
    return answer
