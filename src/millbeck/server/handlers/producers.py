"""DescribeProducers: who writes to a partition, and which transaction each has open.

Behaviour
- The leader answers from its producer state; a partition it does not have is UNKNOWN_TOPIC_OR_PARTITION.
Versions
- 0 only.
"""

from __future__ import annotations

from millbeck.kernel.errors import ApiError, TopicAuthorizationFailed
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.describe_producers import (
    DescribeProducersPartition,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
    ProducerState,
)


def error_reply(
    request: DescribeProducersRequest | None, version: int, error: ApiError
) -> DescribeProducersResponse | None:
    if request is None:
        return None
    return DescribeProducersResponse(
        topics=[
            DescribeProducersTopicResponse(
                topic.name,
                [DescribeProducersPartition(index, error.code, error.message) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


@handles(61, error_reply=error_reply)
def handle_describe_producers(call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            DescribeProducersTopicResponse(
                topic.name, [_describe(call, topic.name, index) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _describe(call: Call, topic: str, index: int) -> DescribeProducersPartition:
    answer = DescribeProducersPartition(index)
    try:
        if not call.may(Operation.READ, ResourceType.TOPIC, topic):
            raise TopicAuthorizationFailed
        partition = call.broker.topics.partition(topic, index)
        answer.active_producers = [
            ProducerState(
                producer.producer_id,
                producer.epoch,
                producer.last_sequence,
                producer.last_timestamp,
                producer.coordinator_epoch,
                -1 if producer.transaction_first_offset is None else producer.transaction_first_offset,
            )
            for producer in partition.log.producers.producers.values()
        ]
    except ApiError as error:
        answer.error_code = error.code
        answer.error_message = error.message
    return answer
