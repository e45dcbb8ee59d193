"""Leaders are elected on demand: ElectLeaders.

Behaviour
- Of the partitions named, each has its outcome; without names all are looked at, and those that need none left out.
- Preferred: the first replica leads if it is in sync and alive. Unclean: anybody alive leads what nobody does, whatever
  the topic's settings; records may be lost.
Versions
- 0 knows preferred elections only, and has no error for the whole request; 1 brings both.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.elect_leaders import (
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


@handles(43, error_reply=elect_error)
async def handle_elect_leaders(call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    return await broker.quorum.submit(lambda image: broker.controller.elect_leaders(image, request))
