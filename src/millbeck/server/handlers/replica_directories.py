"""Brokers tell in which directory their replicas are: AssignReplicasToDirs.

Behaviour
- Each replica is assigned or refused by itself. One in a directory that is not online leaves the ISR.
"""

from __future__ import annotations

from millbeck.kernel.errors import ClusterAuthorizationFailed
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


@handles(73)
async def handle_assign_replicas_to_dirs(
    call: Call, request: AssignReplicasToDirsRequest
) -> AssignReplicasToDirsResponse:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    return await broker.quorum.submit(lambda image: broker.controller.assign_replicas_to_directories(image, request))
