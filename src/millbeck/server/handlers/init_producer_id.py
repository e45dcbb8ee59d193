"""InitProducerId: an identity for an idempotent or a transactional producer.

Behaviour
- Without a transactional id any broker answers: a new id, epoch 0. A producer that names the id and epoch it has gets a
  new id all the same, as Kafka's brokers do for idempotent producers.
- With one, the transaction coordinator answers: the next epoch, which fences whoever used the transactional id before.
  CONCURRENT_TRANSACTIONS as long as that one's last transaction is not ended everywhere.
Versions
- 3: the current id and epoch (KIP-360). 4: PRODUCER_FENCED, which older clients hear of as INVALID_PRODUCER_EPOCH.
  5: TRANSACTION_ABORTABLE. 6 is unstable and not served.
"""

from __future__ import annotations

from typing import Final

from millbeck.coordinator.transaction.initialising import Initialisation
from millbeck.kernel.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    InvalidProducerEpoch,
    InvalidRequest,
    InvalidTransactionTimeout,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
)
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FENCED_FROM: Final = 4
NOTHING: Final = -1


def error_reply(request: InitProducerIdRequest | None, version: int, error: ApiError) -> InitProducerIdResponse:
    if isinstance(error, ProducerFenced) and version < FENCED_FROM:
        error = InvalidProducerEpoch()
    return InitProducerIdResponse(error_code=error.code)


@handles(22, error_reply=error_reply)
async def handle_init_producer_id(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if (request.producer_id == NOTHING) != (request.producer_epoch == NOTHING):
        raise InvalidRequest("producer id and producer epoch go together: both or neither")
    if request.transactional_id is not None:
        return await _init_transactional(call, request, request.transactional_id)
    may_write = call.broker.authorizer.authorize_any(
        call.principal, call.connection.peer_host, Operation.WRITE, ResourceType.TOPIC
    )
    if not may_write and not call.may(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    return InitProducerIdResponse(producer_id=await call.broker.producer_ids.take())


async def _init_transactional(
    call: Call, request: InitProducerIdRequest, transactional_id: str
) -> InitProducerIdResponse:
    if not call.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise TransactionalIdAuthorizationFailed
    if not transactional_id:
        raise InvalidRequest("a transactional id must not be empty")
    broker = call.broker
    if not 0 < request.transaction_timeout_ms <= broker.config.transactions.timeout_ms_max:
        raise InvalidTransactionTimeout
    expected = None if request.producer_id == NOTHING else (request.producer_id, request.producer_epoch)
    answer = await broker.transactions.ask(
        transactional_id,
        lambda shard, new_producer_id: shard.init_producer_id(
            Initialisation(
                transactional_id=transactional_id,
                timeout_ms=request.transaction_timeout_ms,
                expected=expected,
                new_producer_id=new_producer_id,
            ),
            broker.now_ms(),
        ),
    )
    if answer.error_code:
        return InitProducerIdResponse(error_code=answer.error_code)
    return InitProducerIdResponse(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)
