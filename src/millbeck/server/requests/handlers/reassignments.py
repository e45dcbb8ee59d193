"""AlterPartitionReassignments, ListPartitionReassignments: move partitions to other brokers.

Behaviour
- The response is sent when a reassignment has started, not when it is complete: list the reassignments to see that.
- Each partition is accepted or refused on its own; null replicas cancel a reassignment.
Versions
- AlterPartitionReassignments 1: a request may forbid a change of the replication factor.
"""

from __future__ import annotations

from millbeck.kernel.errors import ClusterAuthorizationFailed, NotController
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@handles(45, needs=[Need(Operation.ALTER, ResourceType.CLUSTER)])
async def handle_alter_partition_reassignments(
    call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    return await broker.quorum.submit(
        lambda image: broker.controller.alter_partition_reassignments(image, request), by=call
    )


@handles(46, needs=[Need(Operation.DESCRIBE, ResourceType.CLUSTER)])
def handle_list_partition_reassignments(
    call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    if not call.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    if not broker.quorum.is_active:
        raise NotController
    return broker.controller.list_partition_reassignments(broker.quorum.image, request)
