"""ElectLeaders: elect leaders of partitions on demand.

Behaviour
- Each named partition has its own result. Without names all partitions are elected, and those that need no election are
  left out of the response.
- Preferred: elects the first replica if it is in sync and alive. Unclean: elects any live replica of a partition
  without a leader, whatever the topic's config; records may be lost.
Versions
- 0 has only preferred elections and no top-level error; 1 adds both.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.replicas import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)

TELLS_OF_ONE_ERROR_FROM: Final = 1


def elect_error(request: ElectLeadersRequest | None, version: int, error: ApiError) -> ElectLeadersResponse | None:
    if request is None and version < TELLS_OF_ONE_ERROR_FROM:
        return None
    named = [] if request is None or request.topic_partitions is None else request.topic_partitions
    results = [
        ReplicaElectionResult(
            asked.topic, [ElectLeadersPartitionResult(index, error.code, error.message) for index in asked.partitions]
        )
        for asked in named
    ]
    code = error.code if version >= TELLS_OF_ONE_ERROR_FROM else 0
    return ElectLeadersResponse(error_code=code, replica_election_results=results)


@handles(43, needs=[Need(Operation.ALTER, ResourceType.CLUSTER)], error_reply=elect_error)
async def handle_elect_leaders(call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    return await broker.quorum.submit(lambda image: broker.controller.elect_leaders(image, request), by=call)
