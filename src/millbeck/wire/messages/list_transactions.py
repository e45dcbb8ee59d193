"""ListTransactions: the transactions a coordinator knows."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct


@message(kind=Kind.REQUEST, api_key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    """Empty filters let everything pass. Version 1 filters by duration, version 2 by pattern."""

    state_filters: list[str] = array(of=string)
    producer_id_filters: list[int] = array(of=int64)
    duration_filter: int = int64(versions="1+", default=-1)
    transactional_id_pattern: str | None = string(versions="2+", nullable="0+", default=None)


@struct
class TransactionState:
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@message(kind=Kind.RESPONSE, api_key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    """One line a transaction, and the states that were asked for and do not exist."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    unknown_state_filters: list[str] = array(of=string)
    transaction_states: list[TransactionState] = array(of=TransactionState)
