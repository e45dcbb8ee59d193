"""Requests that brokers send to the active controller: AlterPartition, AllocateProducerIds, AssignReplicasToDirs.

Behaviour
- All three need CLUSTER_ACTION on the cluster and are answered when the change is committed.
- AlterPartition, from leaders that change an ISR: each partition is changed or refused on its own; the response has the
  committed partition state. The whole request is refused if the broker's registration is no longer current
  (STALE_BROKER_EPOCH).
- AllocateProducerIds reserves a block of producer ids; each id is handed out only once.
- AssignReplicasToDirs reports the log directories of replicas (KIP-858): each is assigned or refused on its own. A
  replica in a directory that is not online is removed from the ISR.
Versions
- AlterPartition 2 names topics by id; 3 names the broker epoch of each replica, so that a restarted broker with the
  same id is noticed.
"""

from __future__ import annotations

from millbeck.kernel.errors import ClusterAuthorizationFailed
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.nodes import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from millbeck.wire.messages.replicas import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)


@handles(56, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)])
async def handle_alter_partition(call: Call, request: AlterPartitionRequest) -> AlterPartitionResponse:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    return await broker.quorum.submit(lambda image: broker.controller.alter_partition(image, request))


@handles(67, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)])
async def handle_allocate_producer_ids(call: Call, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    block = await broker.quorum.submit(
        lambda image: broker.controller.allocate_producer_ids(image, request.broker_id, request.broker_epoch)
    )
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.size)


@handles(73, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)])
async def handle_assign_replicas_to_dirs(
    call: Call, request: AssignReplicasToDirsRequest
) -> AssignReplicasToDirsResponse:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    return await broker.quorum.submit(lambda image: broker.controller.assign_replicas_to_directories(image, request))
