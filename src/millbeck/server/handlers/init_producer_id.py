"""InitProducerId: an id for an idempotent producer.

Behaviour
- Without a transactional id any broker answers: a new id, epoch 0. A producer that names the id and epoch it has gets a
  new id all the same, as Kafka's brokers do for idempotent producers.
- With one, the transaction coordinator answers; there is none in this release, and the refusal says so.
Versions
- 3: the current id and epoch (KIP-360). 4: PRODUCER_FENCED. 5: TRANSACTION_ABORTABLE. 6 is unstable and not served.
"""

from __future__ import annotations

from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    TransactionalIdAuthorizationFailed,
)
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


@handles(22)
async def handle_init_producer_id(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    transactional_id = request.transactional_id
    if transactional_id is not None:
        # Whoever may not and whoever cannot get the same answer: one that clients take for final.
        raise TransactionalIdAuthorizationFailed("transactions are not available in this release")
    may_write = call.broker.authorizer.authorize_any(
        call.principal, call.connection.peer_host, Operation.WRITE, ResourceType.TOPIC
    )
    if not may_write and not call.may(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise InvalidRequest("producer id and producer epoch go together: both or neither")
    return InitProducerIdResponse(producer_id=await call.broker.producer_ids.take())
