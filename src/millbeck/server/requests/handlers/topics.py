"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords.

Behaviour
- Topics the client is not authorized for are refused one by one; the others go to the controller. A refusal does not
  reveal whether a topic exists, nor the name of a topic id.
- Responses are sent when the change is committed; ``validate_only`` changes nothing.
- A quota of partition changes counts every partition that is created or deleted (KIP-599).
- DeleteRecords advances the log start offset; offset -1 means the high watermark, which is also the maximum.
Versions
- CreateTopics 5: the configs of the created topic; 7: topic ids. DeleteTopics 6: by id.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import (
    ApiError,
    InvalidTopic,
    OffsetOutOfRange,
    PolicyViolation,
    ThrottlingQuotaExceeded,
    TopicAuthorizationFailed,
)
from millbeck.kernel.names import is_internal_topic
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.server.quotas.client_quotas import UNLIMITED, Mutations
from millbeck.server.requests.audited import audited
from millbeck.wire.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

HIGH_WATERMARK = -1
STRICT_CREATION_FROM: Final = 6
STRICT_DELETION_FROM: Final = 5
STRICT_GROWTH_FROM: Final = 3
"""Versions from which requests over the quota of partition changes are refused, not only throttled (KIP-599)."""


def create_error(request: CreateTopicsRequest | None, version: int, error: ApiError) -> CreateTopicsResponse | None:
    if request is None:
        return None
    results = [
        CreatableTopicResult(topic.name, error_code=error.code, error_message=error.message) for topic in request.topics
    ]
    return CreateTopicsResponse(topics=results)


@handles(
    19,
    needs=[
        Need(Operation.CREATE, ResourceType.CLUSTER, denied="TOPIC_AUTHORIZATION_FAILED")
        | Need(Operation.CREATE, ResourceType.TOPIC),
        Need(
            Operation.DESCRIBE_CONFIGS,
            ResourceType.TOPIC,
            when="for the configs in the response",
            denied="TOPIC_AUTHORIZATION_FAILED in topic_config_error_code",
        ),
    ],
    error_reply=create_error,
)
async def handle_create_topics(call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    may_create_all = call.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True)
    refused: list[CreatableTopicResult] = []
    allowed = []
    for topic in request.topics:
        if may_create_all or call.may(Operation.CREATE, ResourceType.TOPIC, topic.name):
            allowed.append(topic)
        else:
            error = TopicAuthorizationFailed("Authorization failed.")
            refused.append(CreatableTopicResult(topic.name, error_code=error.code, error_message=error.message))
    broker = call.broker
    mutations = _mutations(call, STRICT_CREATION_FROM)
    request.topics = []
    for topic in allowed:
        try:
            mutations.take(len(topic.assignments) or _partition_count(call, topic.num_partitions))
            request.topics.append(topic)
        except ThrottlingQuotaExceeded as error:
            refused.append(CreatableTopicResult(topic.name, error_code=error.code, error_message=error.message))
    response = await broker.quorum.submit(
        lambda image: broker.controller.create_topics(
            image,
            request,
            may_describe_configs=lambda name: call.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name),
        ),
        by=call,
    )
    response.topics += refused
    response.throttle_time_ms = mutations.wait_ms()
    return response


def _mutations(call: Call, strict_from: int) -> Mutations:
    """The client's controller mutation quota for this request; requests of older versions are never refused because of
    it."""
    quotas = call.broker.quotas
    return UNLIMITED if quotas is None else quotas.mutations(call, is_strict=call.version >= strict_from)


def _partition_count(call: Call, asked: int) -> int:
    return asked if asked > 0 else call.broker.config.topic_defaults.num_partitions


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


@handles(
    20,
    needs=[
        Need(Operation.DELETE, ResourceType.CLUSTER, denied="TOPIC_AUTHORIZATION_FAILED")
        | Need(Operation.DELETE, ResourceType.TOPIC),
        Need(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            when="to see the name of a topic given by id",
            denied="the name is null",
        ),
    ],
    error_reply=delete_error,
)
async def handle_delete_topics(call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    broker = call.broker
    refused: list[DeletableTopicResult] = []
    allowed: list[DeleteTopicState] = []
    may_delete_all = call.may(Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True)
    for state in request.topics or [DeleteTopicState(name=name) for name in request.topic_names]:
        refusal = None if may_delete_all else _deletion_refusal(call, state)
        if refusal is None:
            allowed.append(state)
        else:
            refused.append(refusal)
    mutations = _mutations(call, STRICT_DELETION_FROM)
    request.topics, request.topic_names = [], []
    for state in allowed:
        try:
            mutations.take(_partitions_of(call, state))
            request.topics.append(state)
        except ThrottlingQuotaExceeded as error:
            refused.append(DeletableTopicResult(state.name, state.topic_id, error.code, error.message))
    response = await broker.quorum.submit(lambda image: broker.controller.delete_topics(image, request), by=call)
    response.responses += refused
    response.throttle_time_ms = mutations.wait_ms()
    return response


def _partitions_of(call: Call, state: DeleteTopicState) -> int:
    topics = call.broker.image.topics
    topic = topics.with_id(state.topic_id) if state.name is None else topics.named(state.name)
    return 0 if topic is None else len(topic.partitions)


def _deletion_refusal(call: Call, state: DeleteTopicState) -> DeletableTopicResult | None:
    """The error for a topic that the client may not delete. A client that may describe it gets the controller's answer,
    which says whether it exists; others are refused in both cases."""
    name, topics = state.name, call.broker.image.topics
    if name is None:
        topic = topics.with_id(state.topic_id)
        name = None if topic is None else topic.name
    if name is None or call.may(Operation.DELETE, ResourceType.TOPIC, name):
        return None
    if topics.named(name) is None and call.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
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


@handles(37, needs=[Need(Operation.ALTER, ResourceType.TOPIC)], error_reply=partitions_error)
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
    mutations = _mutations(call, STRICT_GROWTH_FROM)
    request.topics = []
    for topic in allowed:
        known = broker.image.topics.named(topic.name)
        try:
            mutations.take(0 if known is None else max(0, topic.count - len(known.partitions)))
            request.topics.append(topic)
        except ThrottlingQuotaExceeded as throttled:
            refused.append(CreatePartitionsTopicResult(topic.name, throttled.code, throttled.message))
    response = await broker.quorum.submit(lambda image: broker.controller.create_partitions(image, request), by=call)
    response.results += refused
    response.throttle_time_ms = mutations.wait_ms()
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


@handles(21, needs=[Need(Operation.DELETE, ResourceType.TOPIC)], error_reply=records_error)
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
            raise InvalidTopic(f"records of the internal topic {name} cannot be deleted")
        partition = call.broker.topics.led_partition(name, asked.partition_index)
        if not topic.config.is_deleted:
            raise PolicyViolation(f"records of {name} cannot be deleted: its cleanup.policy is compact, without delete")
        offset = partition.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
        if offset > partition.high_watermark:
            raise OffsetOutOfRange(f"offset {offset} is above the high watermark {partition.high_watermark}")
        before = partition.log.log_start_offset
        start_offset = partition.log.delete_records(offset)
        partition.log_start_moved()
        audited(
            call,
            "records",
            f"{name}-{asked.partition_index}",
            before={"log_start_offset": before},
            after={"log_start_offset": start_offset},
        )
        return DeleteRecordsPartitionResult(asked.partition_index, start_offset, 0)
    except ApiError as error:
        return DeleteRecordsPartitionResult(asked.partition_index, -1, error.code)
