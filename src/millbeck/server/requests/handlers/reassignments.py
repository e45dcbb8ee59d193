"""Partitions move to other brokers: AlterPartitionReassignments, ListPartitionReassignments.

Behaviour
- A move is answered when it has begun, not when it is complete: that is what listing is for.
- Each partition moves or is refused by itself; null replicas cancel a move.
Versions
- AlterPartitionReassignments 1: a request may forbid that the number of replicas changes.
"""

from __future__ import annotations

from millbeck.kernel.errors import ClusterAuthorizationFailed, NotController
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from millbeck.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@handles(45)
async def handle_alter_partition_reassignments(
    call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    return await broker.quorum.submit(lambda image: broker.controller.alter_partition_reassignments(image, request))


@handles(46)
def handle_list_partition_reassignments(
    call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    if not call.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    if not broker.quorum.is_active:
        raise NotController
    return broker.controller.list_partition_reassignments(broker.quorum.image, request)
