"""InitProducerId: an identity for an idempotent or a transactional producer.

Behaviour
- Without a transactional id any broker answers: a new id, epoch 0. A producer that names the id and epoch it has gets a
  new id all the same, as Kafka's brokers do for idempotent producers.
- With one, the transaction coordinator answers: the next epoch, which fences whoever used the transactional id before.
  CONCURRENT_TRANSACTIONS as long as that one's last transaction is not ended everywhere.
Versions
- 3: the current id and epoch (KIP-360). 4: PRODUCER_FENCED, which older clients hear of as INVALID_PRODUCER_EPOCH.
  5: TRANSACTION_ABORTABLE.
- 6 is unstable and served with ``unstable.api.versions.enable`` or ``unstable.feature.versions.enable`` only (KIP-939):
  transactions that never time out, for which ``transaction.two.phase.commit.enable`` must be on and the principal
  allowed TWO_PHASE_COMMIT (TRANSACTIONAL_ID_AUTHORIZATION_FAILED otherwise), and, from transaction.version 3 on,
  a transaction that the producer before has left open is kept and named in the answer. Below that, keeping one is
  UNSUPPORTED_VERSION, as in Kafka 4.3.
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
    UnsupportedVersion,
)
from millbeck.kernel.units import INT_MAX
from millbeck.metadata.features import KEEPS_PREPARED_FROM, TRANSACTION_VERSION
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FENCED_FROM: Final = 4
STABLE_MAX: Final = 5
NOTHING: Final = -1


def error_reply(request: InitProducerIdRequest | None, version: int, error: ApiError) -> InitProducerIdResponse:
    if isinstance(error, ProducerFenced) and version < FENCED_FROM:
        error = InvalidProducerEpoch()
    return InitProducerIdResponse(error_code=error.code)


@handles(22, error_reply=error_reply, max_version=STABLE_MAX)
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
    if request.enable2_pc and not call.may(Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise TransactionalIdAuthorizationFailed
    if not transactional_id:
        raise InvalidRequest("a transactional id must not be empty")
    timeout_ms = _timeout_ms(call, request)
    broker = call.broker
    expected = None if request.producer_id == NOTHING else (request.producer_id, request.producer_epoch)
    answer = await broker.transactions.ask(
        transactional_id,
        lambda shard, new_producer_id: shard.init_producer_id(
            Initialisation(
                transactional_id=transactional_id,
                timeout_ms=timeout_ms,
                expected=expected,
                new_producer_id=new_producer_id,
                keeps_prepared=request.keep_prepared_txn,
            ),
            broker.now_ms(),
        ),
    )
    if answer.error_code:
        return InitProducerIdResponse(error_code=answer.error_code)
    return InitProducerIdResponse(
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
        ongoing_txn_producer_id=answer.ongoing_producer_id,
        ongoing_txn_producer_epoch=answer.ongoing_producer_epoch,
    )


def _timeout_ms(call: Call, request: InitProducerIdRequest) -> int:
    """How long the producer's transactions may take, once what it asks for is something it may have."""
    options, levels = call.broker.config.transactions, call.broker.image.features.levels
    if request.enable2_pc and not options.two_phase_commit_enable:
        raise TransactionalIdAuthorizationFailed
    if request.keep_prepared_txn and levels.get(TRANSACTION_VERSION, 0) < KEEPS_PREPARED_FROM:
        raise UnsupportedVersion("prepared transactions are kept from transaction.version 3 on")
    if request.keep_prepared_txn and request.producer_id != NOTHING:
        raise InvalidRequest("a transaction is kept for a producer that begins, not for one that has an id")
    if request.enable2_pc:
        return INT_MAX
    if not 0 < request.transaction_timeout_ms <= options.timeout_ms_max:
        raise InvalidTransactionTimeout
    return request.transaction_timeout_ms
