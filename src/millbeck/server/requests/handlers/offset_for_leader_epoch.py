"""OffsetForLeaderEpoch: the end offset of a leader epoch, by which a reader detects that its log diverged.

Behaviour
- The response has the largest epoch that is not above the requested one, and the offset after its last record; -1 and
  -1 if there is none.
- A current leader epoch other than this leader's is FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH. Only the leader
  answers.
Versions
- 3: the replica id; a follower must use the inter-broker listener.
"""

from __future__ import annotations

from millbeck.kernel.errors import ApiError, TopicAuthorizationFailed
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.log_offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def error_reply(
    request: OffsetForLeaderEpochRequest | None, version: int, error: ApiError
) -> OffsetForLeaderEpochResponse | None:
    if request is None:
        return None
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic, [EpochEndOffset(error.code, asked.partition) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


@handles(
    23,
    needs=[
        Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, denied="TOPIC_AUTHORIZATION_FAILED")
        | Need(Operation.DESCRIBE, ResourceType.TOPIC)
    ],
    error_reply=error_reply,
)
def handle_offset_for_leader_epoch(call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic, [_answer(call, request.replica_id, topic.topic, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _answer(call: Call, replica_id: int, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        may = (
            call.is_cluster_action_allowed()
            if replica_id >= 0
            else call.may(Operation.DESCRIBE, ResourceType.TOPIC, topic)
        )
        if not may:
            raise TopicAuthorizationFailed
        partition = call.broker.topics.partition(topic, asked.partition)
        partition.check_is_leader(asked.current_leader_epoch)
        epoch, end_offset = partition.log.end_offset_for_epoch(asked.leader_epoch)
        return EpochEndOffset(0, asked.partition, epoch, end_offset)
    except ApiError as error:
        return EpochEndOffset(error.code, asked.partition)
