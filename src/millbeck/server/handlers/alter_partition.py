"""Leaders tell the controller who is in sync with them: AlterPartition.

Behaviour
- Each partition is changed or refused by itself; the answer is the state that is committed.
- The whole request is refused for a process that is not registered any more (STALE_BROKER_EPOCH).
Versions
- 2 names topics by id; 3 names the broker epoch of each replica, so that another process of the same id is noticed.
"""

from __future__ import annotations

from millbeck.kernel.errors import ClusterAuthorizationFailed
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


@handles(56)
async def handle_alter_partition(call: Call, request: AlterPartitionRequest) -> AlterPartitionResponse:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    return await broker.quorum.submit(lambda image: broker.controller.alter_partition(image, request))
