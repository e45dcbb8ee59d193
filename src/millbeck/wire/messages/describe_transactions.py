"""DescribeTransactions: transactions in full."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct


@message(kind=Kind.REQUEST, api_key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    """Asked of the coordinator of each id."""

    transactional_ids: list[str] = array(of=string)


@struct
class DescribeTransactionsTopicResult:
    topic: str = string()
    partitions: list[int] = array(of=int32)


@struct
class TransactionState:
    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[DescribeTransactionsTopicResult] = array(of=DescribeTransactionsTopicResult)


@message(kind=Kind.RESPONSE, api_key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    """State, producer and partitions of each transaction."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    transaction_states: list[TransactionState] = array(of=TransactionState)
