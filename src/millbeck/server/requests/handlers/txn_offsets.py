"""TxnOffsetCommit: commit a group's offsets as part of a transaction.

Behaviour
- The group coordinator stores them as pending; they take effect when the transaction commits and are dropped when it
  aborts. Until then an OffsetFetch with ``require_stable`` gets UNSTABLE_OFFSET_COMMIT.
- The transaction coordinator verifies the partition first (KIP-890); no further request of the connection is handled
  meanwhile.
- A topic or partition that does not exist is refused; the others are written in one batch.
Versions
- 3: the member's identity. 4: TRANSACTION_ABORTABLE. 5: the partition is added to the transaction implicitly.
"""

from __future__ import annotations

import asyncio
from typing import Final

from millbeck.client.errors import ConnectFailed, Disconnected, RequestTimeout
from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.runtime.shard_runner import ProducerIdAndEpoch
from millbeck.kernel.errors import (
    ApiError,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    InvalidProducerEpoch,
    InvalidTxnState,
    NotCoordinator,
    ProducerFenced,
    TopicAuthorizationFailed,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC
from millbeck.replication.partition import Partition
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from millbeck.wire.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ABORTABLE_FROM: Final = 4
ADDS_FROM: Final = 5
NO_SEQUENCE: Final = -1
_UNREACHABLE: Final = (ConnectFailed, Disconnected, RequestTimeout, NotCoordinator)
"""Failures to reach the transaction coordinator, answered as retriable: the client need not look for that coordinator.
NOT_COORDINATOR of the group coordinator is passed on, or the client would ask here forever."""


def error_reply(
    request: TxnOffsetCommitRequest | None, version: int, error: ApiError
) -> TxnOffsetCommitResponse | None:
    if request is None:
        return None
    return _refused(request.topics, _error_for_version(error, version))


def _error_for_version(error: ApiError, version: int) -> ApiError:
    """Map an error to one that this request version defines."""
    if isinstance(error, TransactionAbortable) and version < ABORTABLE_FROM:
        return InvalidTxnState(error.message)
    if isinstance(error, ProducerFenced):
        return InvalidProducerEpoch(error.message)
    if isinstance(error, ConcurrentTransactions) and version < ADDS_FROM:
        return CoordinatorLoadInProgress(error.message)
    return error


def _refused(topics: list[TxnOffsetCommitRequestTopic], error: ApiError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [TxnOffsetCommitResponsePartition(each.partition_index, error.code) for each in topic.partitions],
            )
            for topic in topics
        ]
    )


@handles(
    28,
    needs=[
        Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        Need(Operation.READ, ResourceType.GROUP),
        Need(Operation.READ, ResourceType.TOPIC),
    ],
    error_reply=error_reply,
)
async def handle_txn_offset_commit(call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    if not call.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        raise TransactionalIdAuthorizationFailed
    if not call.may(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    codes: dict[TopicPartition, int] = {}
    accepted = _accepted(call, request, codes)
    if accepted:
        answer = await _commit(call, request, accepted)
        for topic in answer.topics:
            for each in topic.partitions:
                codes[TopicPartition(topic.name, each.partition_index)] = each.error_code
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(
                        each.partition_index, codes[TopicPartition(topic.name, each.partition_index)]
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _accepted(
    call: Call, request: TxnOffsetCommitRequest, codes: dict[TopicPartition, int]
) -> list[OffsetCommitRequestTopic]:
    """The valid offsets, with topic names and ids; errors for the others."""
    accepted: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        is_allowed = call.may(Operation.READ, ResourceType.TOPIC, topic.name)
        image = call.broker.image.topics.named(topic.name)
        known: list[OffsetCommitRequestPartition] = []
        for each in topic.partitions:
            if not is_allowed or image is None or each.partition_index not in image.partitions:
                error = UnknownTopicOrPartition if is_allowed else TopicAuthorizationFailed
                codes[TopicPartition(topic.name, each.partition_index)] = error.code
                continue
            known.append(
                OffsetCommitRequestPartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    committed_metadata=each.committed_metadata,
                )
            )
        if known:
            assert image is not None
            accepted.append(OffsetCommitRequestTopic(topic.name, image.topic_id, known))
    return accepted


async def _commit(
    call: Call, request: TxnOffsetCommitRequest, topics: list[OffsetCommitRequestTopic]
) -> OffsetCommitResponse:
    broker = call.broker
    partition = _partition_of(call, request.group_id)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    adds = call.version >= ADDS_FROM
    guard = broker.verification.start(partition, *producer, NO_SEQUENCE, adds=adds)
    if guard is not None:
        outcomes = await broker.verification.ask(request.transactional_id, [guard])
        error = outcomes[partition.name]
        if isinstance(error, _UNREACHABLE):
            raise CoordinatorLoadInProgress(error.message)
        if error is not None:
            raise error
    broker.verification.check(partition, guard, *producer, NO_SEQUENCE)
    commit = OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=topics,
    )
    answer: asyncio.Future[OffsetCommitResponse] = asyncio.get_running_loop().create_future()

    def fail(error: ApiError) -> None:
        if not answer.done():
            answer.set_exception(error)

    def succeed(response: OffsetCommitResponse) -> None:
        if not answer.done():
            answer.set_result(response)

    broker.groups.write(
        request.group_id,
        lambda shard: shard.commit_in_transaction(commit, broker.now_ms()),
        ResponseCallback(succeed, fail),
        producer,
    )
    return await answer


def _partition_of(call: Call, group_id: str) -> Partition:
    broker = call.broker
    try:
        return broker.topics.led_partition(CONSUMER_OFFSETS_TOPIC, broker.groups.partition_for(group_id))
    except UnknownTopicOrPartition:
        raise CoordinatorNotAvailable from None
    except ApiError:
        raise NotCoordinator from None
