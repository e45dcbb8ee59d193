"""The metadata quorum and the cluster's features: DescribeQuorum and UpdateFeatures.

Behaviour
- The only topic with a quorum is ``__cluster_metadata``, partition 0. On a single node its voter is the node itself,
  which is always caught up.
- UpdateFeatures changes all levels it names or none; every node must know the new ones.
Versions
- DescribeQuorum 1: times; 2: nodes and directory ids. UpdateFeatures 1: kinds of downgrade; 2: one outcome.
"""

from __future__ import annotations

from typing import Final

from millbeck.controller.features import QuorumFeatures
from millbeck.kernel.errors import ClusterAuthorizationFailed, UnknownTopicOrPartition
from millbeck.kernel.names import CLUSTER_METADATA_TOPIC
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
    QuorumListener,
    QuorumNode,
    QuorumReplica,
)
from millbeck.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

METADATA_PARTITION: Final = 0


@handles(55)
def handle_describe_quorum(call: Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if not call.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    host, port = call.broker.address_for(call.connection)
    listener = QuorumListener(call.connection.listener.address.name, host, port)
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            DescribeQuorumTopic(
                topic.topic_name,
                [_describe(call, topic.topic_name, asked.partition_index) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
        nodes=[QuorumNode(call.broker.node_id, [listener])] if call.version >= 2 else [],
    )


def _describe(call: Call, topic: str, index: int) -> DescribeQuorumPartition:
    answer = DescribeQuorumPartition(index, error_message=None)
    if topic != CLUSTER_METADATA_TOPIC or index != METADATA_PARTITION:
        answer.error_code = UnknownTopicOrPartition.code
        return answer
    broker = call.broker
    now_ms = broker.now_ms()
    answer.leader_id = broker.node_id
    answer.leader_epoch = broker.quorum.epoch
    answer.high_watermark = broker.quorum.high_watermark
    voter = QuorumReplica(
        broker.node_id,
        log_end_offset=broker.quorum.log.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    answer.current_voters = [voter]
    return answer


@handles(57)
async def handle_update_features(call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    quorum = QuorumFeatures(node_id=broker.node_id, voters=tuple(broker.quorum.settings.static_voters))
    return await broker.quorum.submit(
        lambda image: broker.controller.update_features(image, request, version=call.version, quorum=quorum)
    )
