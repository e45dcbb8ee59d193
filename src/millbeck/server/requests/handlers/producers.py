"""DescribeProducers: the active producers of a partition and their open transactions.

Behaviour
- The leader answers from its producer state; a partition without a replica here is UNKNOWN_TOPIC_OR_PARTITION.
- A partition named twice is answered once.
Versions
- 0 only.
"""

from __future__ import annotations

from millbeck.kernel.errors import ApiError, TopicAuthorizationFailed
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.transactions import (
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


@handles(61, needs=[Need(Operation.READ, ResourceType.TOPIC)], error_reply=error_reply)
async def handle_describe_producers(call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    slices = TimeSlices(call.broker.environment.clock)
    # Four bytes of a request select a partition whose producers may take megabytes: none is described twice.
    wanted: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    topics = []
    for name, indexes in wanted.items():
        partitions = []
        for index in indexes:
            partitions.append(_describe(call, name, index))
            await slices.yield_to_loop()
        topics.append(DescribeProducersTopicResponse(name, partitions))
    return DescribeProducersResponse(topics=topics)


def _describe(call: Call, topic: str, index: int) -> DescribeProducersPartition:
    answer = DescribeProducersPartition(index)
    try:
        if not call.may(Operation.READ, ResourceType.TOPIC, topic):
            raise TopicAuthorizationFailed
        partition = call.broker.topics.led_partition(topic, index)
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
