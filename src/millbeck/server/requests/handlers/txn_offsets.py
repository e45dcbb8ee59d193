"""TxnOffsetCommit: a group's offsets as part of a transaction.

Behaviour
- The group's coordinator stores them beside the group's offsets; they count once the transaction is committed, and are
  dropped when it is aborted. Until then whoever asks for stable offsets is told UNSTABLE_OFFSET_COMMIT.
- The transaction's coordinator is asked first (KIP-890); the connection is held meanwhile.
- A topic or partition that does not exist is refused; the others are stored together.
Versions
- 3: the member's identity. 4: TRANSACTION_ABORTABLE. 5: the offsets join the transaction on the way.
"""

from __future__ import annotations

import asyncio
from typing import Final

from millbeck.client.errors import ConnectFailed, Disconnected, RequestTimeout
from millbeck.coordinator.runtime.host import Producer
from millbeck.coordinator.runtime.result import Reply
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
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from millbeck.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ABORTABLE_FROM: Final = 4
ADDS_FROM: Final = 5
NO_SEQUENCE: Final = -1
_ELSEWHERE: Final = (ConnectFailed, Disconnected, RequestTimeout, NotCoordinator)
"""The transaction's coordinator could not be asked: to come back is enough, it is not for the client to look for it. Of
the group's own coordinator a client must hear where it is not, or it would ask here for ever."""


def error_reply(
    request: TxnOffsetCommitRequest | None, version: int, error: ApiError
) -> TxnOffsetCommitResponse | None:
    if request is None:
        return None
    return _refused(request.topics, _told(error, version))


def _told(error: ApiError, version: int) -> ApiError:
    """What a client of this version can make something of."""
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


@handles(28, error_reply=error_reply)
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
    """The offsets that can be stored, under names and ids; errors for the others."""
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
    producer = Producer(request.producer_id, request.producer_epoch)
    adds = call.version >= ADDS_FROM
    guard = broker.verification.start(partition, *producer, NO_SEQUENCE, adds=adds)
    if guard is not None:
        outcomes = await broker.verification.ask(request.transactional_id, [guard])
        error = outcomes[partition.name]
        if isinstance(error, _ELSEWHERE):
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
        Reply(succeed, fail),
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
