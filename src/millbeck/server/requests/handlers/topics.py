"""Topics come, grow, shrink at their start, and go: CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords.

Behaviour
- What a client may not do is refused topic by topic and left out of what the controller is asked; the rest goes on.
  The refusal does not tell whether there is such a topic, nor the name behind an id.
- Replies leave when the change is committed; ``validate_only`` changes nothing.
- DeleteRecords moves a log's start; offset -1 is the high watermark, which is also as far as it may go.
Versions
- CreateTopics 5: the settings of what was created; 7: topic ids. DeleteTopics 6: by id.
"""

from __future__ import annotations

from millbeck.kernel.errors import (
    ApiError,
    InvalidTopic,
    OffsetOutOfRange,
    PolicyViolation,
    TopicAuthorizationFailed,
)
from millbeck.kernel.names import is_internal_topic
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from millbeck.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from millbeck.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from millbeck.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

HIGH_WATERMARK = -1


def create_error(request: CreateTopicsRequest | None, version: int, error: ApiError) -> CreateTopicsResponse | None:
    if request is None:
        return None
    results = [
        CreatableTopicResult(topic.name, error_code=error.code, error_message=error.message) for topic in request.topics
    ]
    return CreateTopicsResponse(topics=results)


@handles(19, error_reply=create_error)
async def handle_create_topics(call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    may_create_all = call.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    refused: list[CreatableTopicResult] = []
    allowed = []
    for topic in request.topics:
        if may_create_all or call.may(Operation.CREATE, ResourceType.TOPIC, topic.name):
            allowed.append(topic)
        else:
            error = TopicAuthorizationFailed()
            refused.append(CreatableTopicResult(topic.name, error_code=error.code, error_message=error.message))
    request.topics = allowed
    broker = call.broker
    response = await broker.quorum.submit(
        lambda image: broker.controller.create_topics(
            image,
            request,
            may_describe_configs=lambda name: call.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name),
        )
    )
    response.topics += refused
    return response


def delete_error(request: DeleteTopicsRequest | None, version: int, error: ApiError) -> DeleteTopicsResponse | None:
    if request is None:
        return None
    states = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    results = [
        DeletableTopicResult(
            state.name if version >= 6 else state.name or "", state.topic_id, error.code, error.message
        )
        for state in states
    ]
    return DeleteTopicsResponse(responses=results)


@handles(20, error_reply=delete_error)
async def handle_delete_topics(call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    broker = call.broker
    refused: list[DeletableTopicResult] = []
    allowed: list[DeleteTopicState] = []
    may_delete_all = call.may(Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)
    for state in request.topics or [DeleteTopicState(name=name) for name in request.topic_names]:
        refusal = None if may_delete_all else _deletion_refusal(call, state)
        if refusal is None:
            allowed.append(state)
        else:
            refused.append(refusal)
    request.topics, request.topic_names = allowed, []
    response = await broker.quorum.submit(lambda image: broker.controller.delete_topics(image, request))
    response.responses += refused
    return response


def _deletion_refusal(call: Call, state: DeleteTopicState) -> DeletableTopicResult | None:
    name = state.name
    if name is None:
        topic = call.broker.image.topics.with_id(state.topic_id)
        name = None if topic is None else topic.name
    if name is None or call.may(Operation.DELETE, ResourceType.TOPIC, name):
        return None
    error = TopicAuthorizationFailed()
    shown = state.name
    if shown is None and call.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
        shown = name
    return DeletableTopicResult(shown, state.topic_id, error.code, error.message)


def partitions_error(
    request: CreatePartitionsRequest | None, version: int, error: ApiError
) -> CreatePartitionsResponse | None:
    if request is None:
        return None
    results = [CreatePartitionsTopicResult(topic.name, error.code, error.message) for topic in request.topics]
    return CreatePartitionsResponse(results=results)


@handles(37, error_reply=partitions_error)
async def handle_create_partitions(call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    broker = call.broker
    refused: list[CreatePartitionsTopicResult] = []
    allowed = []
    for topic in request.topics:
        if call.may(Operation.ALTER, ResourceType.TOPIC, topic.name):
            allowed.append(topic)
        else:
            error = TopicAuthorizationFailed()
            refused.append(CreatePartitionsTopicResult(topic.name, error.code, error.message))
    request.topics = allowed
    response = await broker.quorum.submit(lambda image: broker.controller.create_partitions(image, request))
    response.results += refused
    return response


def records_error(request: DeleteRecordsRequest | None, version: int, error: ApiError) -> DeleteRecordsResponse | None:
    if request is None:
        return None
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                topic.name,
                [DeleteRecordsPartitionResult(asked.partition_index, -1, error.code) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


@handles(21, error_reply=records_error)
def handle_delete_records(call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(topic.name, [_delete(call, topic.name, asked) for asked in topic.partitions])
            for topic in request.topics
        ]
    )


def _delete(call: Call, name: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    try:
        if not call.may(Operation.DELETE, ResourceType.TOPIC, name):
            raise TopicAuthorizationFailed
        topic = call.broker.topics.topic(name)
        if is_internal_topic(name):
            raise InvalidTopic(f"records of the internal topic {name} are not removed by hand")
        partition = call.broker.topics.led_partition(name, asked.partition_index)
        if not topic.config.is_deleted:
            raise PolicyViolation(f"records of {name} are removed by compaction, not by hand")
        offset = partition.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
        if offset > partition.high_watermark:
            raise OffsetOutOfRange(f"offset {offset} is beyond the high watermark {partition.high_watermark}")
        start_offset = partition.log.delete_records(offset)
        partition.log_start_moved()
        return DeleteRecordsPartitionResult(asked.partition_index, start_offset, 0)
    except ApiError as error:
        return DeleteRecordsPartitionResult(asked.partition_index, -1, error.code)
