"""InitProducerId: a producer id and epoch for an idempotent or a transactional producer.

Behaviour
- Without a transactional id any broker answers with a new id and epoch 0. A producer that sends its current id and
  epoch gets a new id too, as Kafka's brokers do for idempotent producers.
- With one, the transaction coordinator answers with the next epoch, which fences earlier producers of the transactional
  id. CONCURRENT_TRANSACTIONS until the markers of the previous transaction are written.
Versions
- 3: the current id and epoch (KIP-360). 4: PRODUCER_FENCED, which older clients get as INVALID_PRODUCER_EPOCH. 5:
  TRANSACTION_ABORTABLE.
- 6 is unstable and enabled with ``unstable.api.versions.enable`` or ``unstable.feature.versions.enable`` only
  (KIP-939): transactions that never time out, for which ``transaction.two.phase.commit.enable`` must be on and the
  principal allowed TWO_PHASE_COMMIT (TRANSACTIONAL_ID_AUTHORIZATION_FAILED otherwise), and, from transaction.version 3
  on, the ongoing transaction of the previous producer can be kept and is returned in the response. Below that, keeping
  one is UNSUPPORTED_VERSION, as in Kafka 4.3.
"""

from __future__ import annotations

from typing import Final

from millbeck.coordinator.transaction.initialization import Initialisation
from millbeck.coordinator.transaction.transaction import NO_EPOCH, NO_PRODUCER_ID
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
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

FENCED_FROM: Final = 4
STABLE_MAX: Final = 5
NOTHING: Final = -1


def error_reply(request: InitProducerIdRequest | None, version: int, error: ApiError) -> InitProducerIdResponse:
    if isinstance(error, ProducerFenced) and version < FENCED_FROM:
        error = InvalidProducerEpoch()
    return _refusal(error.code)


def _refusal(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)


@handles(
    22,
    needs=[
        Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, when="the request has a transactional id"),
        Need(Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, when="two-phase commit is requested"),
        Need(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, when="the request has no transactional id")
        | Need(Operation.WRITE, ResourceType.TOPIC, when="on at least one topic"),
    ],
    error_reply=error_reply,
    max_version=STABLE_MAX,
)
async def handle_init_producer_id(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if (request.producer_id == NOTHING) != (request.producer_epoch == NOTHING):
        raise InvalidRequest("producer id and producer epoch must both be set or both be unset")
    if request.transactional_id is not None:
        return await _init_transactional(call, request, request.transactional_id)
    if not call.may_any(Operation.WRITE, ResourceType.TOPIC) and not call.may(
        Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME
    ):
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
        raise InvalidRequest("transactional id must not be empty")
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
        return _refusal(answer.error_code)
    return InitProducerIdResponse(
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
        ongoing_txn_producer_id=answer.ongoing_producer_id,
        ongoing_txn_producer_epoch=answer.ongoing_producer_epoch,
    )


def _timeout_ms(call: Call, request: InitProducerIdRequest) -> int:
    """Validate the request's options and return the producer's transaction timeout."""
    options, levels = call.broker.config.transactions, call.broker.image.features.levels
    if request.enable2_pc and not options.two_phase_commit_enable:
        raise TransactionalIdAuthorizationFailed
    if request.keep_prepared_txn and levels.get(TRANSACTION_VERSION, 0) < KEEPS_PREPARED_FROM:
        raise UnsupportedVersion("keepPreparedTxn requires transaction.version 3")
    if request.keep_prepared_txn and request.producer_id != NOTHING:
        raise InvalidRequest("keepPreparedTxn is not allowed together with a producer id")
    if request.enable2_pc:
        return INT_MAX
    if not 0 < request.transaction_timeout_ms <= options.timeout_ms_max:
        raise InvalidTransactionTimeout
    return request.transaction_timeout_ms
