"""AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, DescribeTransactions, ListTransactions.

Behaviour
- Only the coordinator of a transactional id answers; other brokers answer NOT_COORDINATOR.
- If one partition cannot be added, none is: the others are OPERATION_NOT_ATTEMPTED.
- AddOffsetsToTxn adds the group's partition of ``__consumer_offsets`` to the transaction.
- EndTxn is answered when the decision is committed; its markers are written afterwards.
Versions
- AddPartitionsToTxn 4 is for brokers: several transactions, to add partitions or only verify them. 5: transaction
  version 2.
- EndTxn 5 is transaction version 2: the epoch is bumped, and the response has the producer id and epoch to continue
  with.
- Below version 2, INVALID_PRODUCER_EPOCH is returned instead of PRODUCER_FENCED.
- ListTransactions 1: filter by duration. 2: filter by pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.transaction.ending import EndTransactionRequest
from millbeck.coordinator.transaction.listing import Filters
from millbeck.coordinator.transaction.patterns import matcher
from millbeck.coordinator.transaction.status import BY_NAME
from millbeck.kernel.errors import (
    NONE,
    ApiError,
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    InvalidProducerEpoch,
    InvalidRequest,
    OperationNotAttempted,
    ProducerFenced,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC, is_internal_topic
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.loop.gather import ResultCollector
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionDescription,
)

FENCED_FROM: Final = 2
BROKERS_VERSION: Final = 4
ADDING_VERSION: Final = 5
END_BUMPS_FROM: Final = 5
DURATION_FROM: Final = 1
PATTERN_FROM: Final = 2


def _error_for_version(error: ApiError, version: int) -> int:
    return InvalidProducerEpoch.code if isinstance(error, ProducerFenced) and version < FENCED_FROM else error.code


def _require_write(call: Call, transactional_id: str) -> None:
    if not call.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise TransactionalIdAuthorizationFailed
    if not transactional_id:
        raise InvalidRequest("transactional id must not be empty")


def _partitions_of(topics: list[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return list(dict.fromkeys(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions))


def _topic_results(
    topics: list[AddPartitionsToTxnTopic], codes: Mapping[TopicPartition, int]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [
                AddPartitionsToTxnPartitionResult(index, codes[TopicPartition(topic.name, index)])
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


# AddPartitionsToTxn


def add_partitions_error_reply(
    request: AddPartitionsToTxnRequest | None, version: int, error: ApiError
) -> AddPartitionsToTxnResponse | None:
    if request is None:
        return None
    if version >= BROKERS_VERSION:
        return AddPartitionsToTxnResponse(error_code=error.code)
    topics = request.v3_and_below_topics
    codes = dict.fromkeys(_partitions_of(topics), _error_for_version(error, version))
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topic_results(topics, codes))


@handles(
    24,
    needs=[
        Need(
            Operation.WRITE,
            ResourceType.TRANSACTIONAL_ID,
            when="versions 0 to 3",
            denied="TRANSACTIONAL_ID_AUTHORIZATION_FAILED in every partition",
        ),
        Need(
            Operation.WRITE,
            ResourceType.TOPIC,
            when="versions 0 to 3",
            denied="TOPIC_AUTHORIZATION_FAILED; the other partitions get OPERATION_NOT_ATTEMPTED",
        ),
        Need(
            Operation.CLUSTER_ACTION,
            ResourceType.CLUSTER,
            when="version 4 and later; on the inter-broker listener only",
        ),
    ],
    error_reply=add_partitions_error_reply,
)
def handle_add_partitions_to_txn(call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse | None:
    if call.version >= BROKERS_VERSION:
        _add_for_brokers(call, request)
        return None
    _require_write(call, request.v3_and_below_transactional_id)
    topics = request.v3_and_below_topics
    partitions = _partitions_of(topics)
    refused = _refused(call, partitions)
    if refused:
        codes = {each: refused.get(each, OperationNotAttempted.code) for each in partitions}
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topic_results(topics, codes))

    def finish(code: int) -> None:
        results = _topic_results(topics, dict.fromkeys(partitions, code))
        call.reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))

    transactional_id = request.v3_and_below_transactional_id
    call.broker.transactions.write(
        transactional_id,
        lambda shard: shard.add_partitions(
            transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            partitions,
            client_version=0,
            now_ms=call.broker.now_ms(),
        ),
        ResponseCallback(finish, call.fail),
    )
    return None


def _refused(call: Call, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    refused: dict[TopicPartition, int] = {}
    for name in partitions:
        # As Kafka answers: clients do not write to internal topics.
        if is_internal_topic(name.topic) or not call.may(Operation.WRITE, ResourceType.TOPIC, name.topic):
            refused[name] = TopicAuthorizationFailed.code
        elif call.broker.image.topics.partition(*name) is None:
            refused[name] = UnknownTopicOrPartition.code
    return refused


def _add_for_brokers(call: Call, request: AddPartitionsToTxnRequest) -> None:
    if not call.is_cluster_action_allowed():
        raise ClusterAuthorizationFailed
    gather: ResultCollector[AddPartitionsToTxnResult] = ResultCollector(
        lambda results: call.reply(AddPartitionsToTxnResponse(results_by_transaction=results))
    )
    for transaction in request.transactions:
        _add_for_broker(call, transaction, gather)
    gather.close()


def _add_for_broker(
    call: Call, asked: AddPartitionsToTxnTransaction, gather: ResultCollector[AddPartitionsToTxnResult]
) -> None:
    partitions = _partitions_of(asked.topics)

    def result(codes: Mapping[TopicPartition, int]) -> AddPartitionsToTxnResult:
        return AddPartitionsToTxnResult(asked.transactional_id, _topic_results(asked.topics, codes))

    reply = gather.ask(lambda error: result(dict.fromkeys(partitions, error.code)))
    transactions = call.broker.transactions
    if asked.verify_only:
        transactions.read(
            asked.transactional_id,
            lambda shard, at: shard.verify_partitions(
                asked.transactional_id, asked.producer_id, asked.producer_epoch, partitions, at
            ),
            ResponseCallback(lambda codes: reply.reply(result(codes)), reply.fail),
        )
        return
    transactions.write(
        asked.transactional_id,
        lambda shard: shard.add_partitions(
            asked.transactional_id,
            asked.producer_id,
            asked.producer_epoch,
            partitions,
            client_version=2 if call.version >= ADDING_VERSION else 0,
            now_ms=call.broker.now_ms(),
        ),
        ResponseCallback(lambda code: reply.reply(result(dict.fromkeys(partitions, code))), reply.fail),
    )


# AddOffsetsToTxn


def add_offsets_error_reply(
    request: AddOffsetsToTxnRequest | None, version: int, error: ApiError
) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=_error_for_version(error, version))


@handles(
    25,
    needs=[Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID), Need(Operation.READ, ResourceType.GROUP)],
    error_reply=add_offsets_error_reply,
)
def handle_add_offsets_to_txn(call: Call, request: AddOffsetsToTxnRequest) -> None:
    _require_write(call, request.transactional_id)
    if not call.may(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    broker = call.broker
    partition = TopicPartition(CONSUMER_OFFSETS_TOPIC, broker.groups.partition_for(request.group_id))
    broker.transactions.write(
        request.transactional_id,
        lambda shard: shard.add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [partition],
            client_version=0,
            now_ms=broker.now_ms(),
        ),
        ResponseCallback(lambda code: call.reply(AddOffsetsToTxnResponse(error_code=code)), call.fail),
    )


# EndTxn


def end_error_reply(request: EndTxnRequest | None, version: int, error: ApiError) -> EndTxnResponse:
    return EndTxnResponse(error_code=_error_for_version(error, version))


@handles(26, needs=[Need(Operation.WRITE, ResourceType.TRANSACTIONAL_ID)], error_reply=end_error_reply)
async def handle_end_txn(call: Call, request: EndTxnRequest) -> EndTxnResponse:
    _require_write(call, request.transactional_id)
    version = 2 if call.version >= END_BUMPS_FROM else 0
    answer = await call.broker.transactions.ask(
        request.transactional_id,
        lambda shard, new_producer_id: shard.end(
            EndTransactionRequest(
                transactional_id=request.transactional_id,
                producer_id=request.producer_id,
                producer_epoch=request.producer_epoch,
                is_committed=request.committed,
                client_version=version,
                new_producer_id=new_producer_id,
            ),
            call.broker.now_ms(),
        ),
    )
    return EndTxnResponse(
        error_code=answer.error_code, producer_id=answer.producer_id, producer_epoch=answer.producer_epoch
    )


# DescribeTransactions


def describe_error_reply(
    request: DescribeTransactionsRequest | None, version: int, error: ApiError
) -> DescribeTransactionsResponse | None:
    if request is None:
        return None
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionDescription(error_code=error.code, transactional_id=each) for each in request.transactional_ids
        ]
    )


@handles(
    65,
    needs=[
        Need(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
        Need(Operation.DESCRIBE, ResourceType.TOPIC, denied="left out of the response"),
    ],
    error_reply=describe_error_reply,
)
def handle_describe_transactions(call: Call, request: DescribeTransactionsRequest) -> None:
    gather: ResultCollector[TransactionDescription] = ResultCollector(
        lambda states: call.reply(DescribeTransactionsResponse(transaction_states=states))
    )
    for transactional_id in dict.fromkeys(request.transactional_ids):
        _ask_description(call, transactional_id, gather)
    gather.close()


def _ask_description(call: Call, transactional_id: str, gather: ResultCollector[TransactionDescription]) -> None:
    reply = gather.ask(lambda error: TransactionDescription(error_code=error.code, transactional_id=transactional_id))

    def finish(state: TransactionDescription) -> None:
        state.topics = [
            each
            for each in state.topics
            if call.may(Operation.DESCRIBE, ResourceType.TOPIC, each.topic, is_filter=True)
        ]
        reply.reply(state)

    if not call.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        reply.fail(TransactionalIdAuthorizationFailed())
    elif not transactional_id:
        reply.fail(InvalidRequest("transactional id must not be empty"))
    else:
        call.broker.transactions.read(
            transactional_id,
            lambda shard, at: shard.describe_transaction(transactional_id, at),
            ResponseCallback(finish, reply.fail),
        )


# ListTransactions


@handles(66, needs=[Need(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, denied="left out of the response")])
def handle_list_transactions(call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    known = [BY_NAME[name] for name in request.state_filters if name in BY_NAME]
    pattern = request.transactional_id_pattern if call.version >= PATTERN_FROM else None
    filters = Filters(
        statuses=frozenset(known) if request.state_filters else None,
        producer_ids=frozenset(request.producer_id_filters),
        duration_ms=request.duration_filter if call.version >= DURATION_FROM else -1,
        matches=matcher(pattern) if pattern else None,
    )
    now_ms = call.broker.now_ms()
    found = call.broker.transactions.read_all(lambda shard, at: shard.list_transactions(filters, now_ms, at))
    return ListTransactionsResponse(
        error_code=NONE,
        unknown_state_filters=[name for name in request.state_filters if name not in BY_NAME],
        transaction_states=[
            each
            for each in found
            if call.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each.transactional_id, is_filter=True)
        ],
    )
