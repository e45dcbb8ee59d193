"""DescribeQuorum and UpdateFeatures: the metadata quorum and the cluster's features.

Behaviour
- The only partition with a quorum is ``__cluster_metadata-0``. Only its leader knows the progress of the others;
  another node answers NOT_LEADER_OR_FOLLOWER.
- UpdateFeatures changes all levels of the request or none; every node must support the new levels.
Versions
- DescribeQuorum 1: timestamps; 2: nodes and directory ids. UpdateFeatures 1: upgrade types; 2: only a top-level error.
"""

from __future__ import annotations

from typing import Final

from millbeck.controller.features import QuorumFeatures
from millbeck.kernel.errors import ClusterAuthorizationFailed, NotLeaderOrFollower, UnknownTopicOrPartition
from millbeck.kernel.ids import ZERO_UUID
from millbeck.kernel.names import CLUSTER_METADATA_TOPIC
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.metadata.quorum_description import QuorumDescription, ReplicaDescription
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.nodes import UpdateFeaturesRequest, UpdateFeaturesResponse
from millbeck.wire.messages.quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
    QuorumListener,
    QuorumNode,
    QuorumReplica,
)

METADATA_PARTITION: Final = 0
DIRECTORIES_FROM: Final = 2
"""The first version of DescribeQuorum with directory ids and listeners."""


@handles(55, needs=[Need(Operation.DESCRIBE, ResourceType.CLUSTER)])
def handle_describe_quorum(call: Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if not call.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    quorum = call.broker.quorum.describe()
    if quorum is None:
        raise NotLeaderOrFollower("The quorum's leader is another node.")
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            DescribeQuorumTopic(
                topic.topic_name,
                [_describe(call, quorum, topic.topic_name, asked.partition_index) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
        nodes=_nodes(call, quorum) if call.version >= DIRECTORIES_FROM else [],
    )


def _describe(call: Call, quorum: QuorumDescription, topic: str, index: int) -> DescribeQuorumPartition:
    answer = DescribeQuorumPartition(index, error_message=None)
    if topic != CLUSTER_METADATA_TOPIC or index != METADATA_PARTITION:
        answer.error_code = UnknownTopicOrPartition.code
        return answer
    answer.leader_id = quorum.leader_id
    answer.leader_epoch = quorum.epoch
    answer.high_watermark = quorum.high_watermark
    answer.current_voters = [_replica(call, each) for each in quorum.voters]
    answer.observers = [_replica(call, each) for each in quorum.observers]
    return answer


def _replica(call: Call, replica: ReplicaDescription) -> QuorumReplica:
    return QuorumReplica(
        replica.key.node_id,
        replica_directory_id=replica.key.directory_id if call.version >= DIRECTORIES_FROM else ZERO_UUID,
        log_end_offset=replica.end_offset,
        last_fetch_timestamp=replica.last_fetch_ms,
        last_caught_up_timestamp=replica.last_caught_up_ms,
    )


def _nodes(call: Call, quorum: QuorumDescription) -> list[QuorumNode]:
    """The listeners of the voters; a single node may have none, and then returns the address that the client connected
    to."""
    if not quorum.endpoints:
        host, port = call.broker.address_for(call.connection)
        return [QuorumNode(call.broker.node_id, [QuorumListener(call.connection.listener.address.name, host, port)])]
    return [
        QuorumNode(node_id, [QuorumListener(each.name, each.host, each.port) for each in endpoints])
        for node_id, endpoints in sorted(quorum.endpoints.items())
    ]


@handles(57, needs=[Need(Operation.ALTER, ResourceType.CLUSTER)])
async def handle_update_features(call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    quorum = QuorumFeatures(
        kraft_version=broker.quorum.kraft_version, node_id=broker.node_id, voters=broker.quorum.voters.ids
    )
    return await broker.quorum.submit(
        lambda image: broker.controller.update_features(
            image, request, version=call.version, quorum=quorum, supported=broker.config.supported_features
        ),
        by=call,
    )
