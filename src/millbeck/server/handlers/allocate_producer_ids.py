"""A broker takes a block of producer ids: AllocateProducerIds.

Behaviour
- Each id is handed out once for ever; the answer leaves when that is committed.
"""

from __future__ import annotations

from millbeck.kernel.errors import ClusterAuthorizationFailed
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


@handles(67)
async def handle_allocate_producer_ids(call: Call, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    block = await broker.quorum.submit(
        lambda image: broker.controller.allocate_producer_ids(image, request.broker_id, request.broker_epoch)
    )
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.size)
