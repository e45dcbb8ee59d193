"""EndTxn: validates requests that end a transaction, and detects retries.

While the markers of a prepared transaction are being written, every request gets CONCURRENT_TRANSACTIONS: the producer
may have learned of the outcome, begun the next transaction and aborted it, all before the markers are written.

Transaction version 1: the request must have the producer's current epoch. If the transaction is complete, the same
outcome counts as a retry.

Transaction version 2: ending a transaction bumps the epoch. A request with the previous epoch is a retry, which gets
the current id and epoch, but only while no later transaction has begun, so it cannot affect one. Aborting a transaction
that has not begun is allowed, since a producer does not know whether any of its writes arrived.

A prepared transaction that was kept (KIP-939) is ended by the producer that kept it, which uses version 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.coordinator.transaction.initialization import ProducerIdRequired
from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import (
    EPOCH_BUMP_VERSION,
    EPOCH_MAX,
    LAST_EPOCH_SHOWN,
    NO_PRODUCER_ID,
    Transaction,
)
from millbeck.kernel.errors import ConcurrentTransactions, InvalidProducerIdMapping, InvalidTxnState, ProducerFenced


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRequest:
    """The parameters of an EndTxn request."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_committed: bool
    client_version: int
    new_producer_id: int | None = None
    """An unused producer id, if one is needed."""


def end(known: Transaction, asked: EndTransactionRequest, now_ms: int) -> Transaction | None:
    """Return the prepared transaction; None if it is complete already, which happens on a retry."""
    if asked.client_version >= EPOCH_BUMP_VERSION:
        return _end_and_bump(known, asked, now_ms)
    if known.is_kept:
        raise InvalidTxnState("a kept transaction can only be ended with transaction version 2")
    _check_id(known, asked, is_retry=False)
    _check_epoch(known, asked)
    if known.status is TransactionState.ONGOING:
        return known.prepared(is_committed=asked.is_committed, client_version=asked.client_version, now_ms=now_ms)
    _check_agrees(known, asked)
    return None


def _end_and_bump(known: Transaction, asked: EndTransactionRequest, now_ms: int) -> Transaction | None:
    if known.status.is_prepared:
        raise ConcurrentTransactions
    is_retry = _is_retry(known, asked)
    _check_id(known, asked, is_retry=is_retry)
    if not is_retry:
        _check_epoch(known, asked)
    if known.status is TransactionState.ONGOING:
        return _prepared(known, asked, now_ms)
    if not is_retry and not asked.is_committed and known.status.is_idle:
        return _prepared(known, asked, now_ms)
    if not is_retry and known.status.is_idle:
        raise InvalidTxnState("there is no transaction to commit")
    _check_agrees(known, asked)
    return None


def _prepared(known: Transaction, asked: EndTransactionRequest, now_ms: int) -> Transaction:
    next_producer_id = NO_PRODUCER_ID
    if known.client.is_exhausted:
        if asked.new_producer_id is None:
            raise ProducerIdRequired
        next_producer_id = asked.new_producer_id
    return known.prepared(
        is_committed=asked.is_committed,
        client_version=asked.client_version,
        next_producer_id=next_producer_id,
        now_ms=now_ms,
    )


def _is_retry(known: Transaction, asked: EndTransactionRequest) -> bool:
    """Whether this retries the request that ended the last transaction, whose response the producer did not receive."""
    if not known.bumps_epochs or known.status in (TransactionState.ONGOING, TransactionState.EMPTY):
        return False
    if asked.producer_id == known.producer_id:
        # No producer has the highest epoch: a producer fenced at the last usable epoch must get a new id.
        return asked.producer_epoch + 1 == known.producer_epoch < EPOCH_MAX
    return (
        asked.producer_id == known.previous_producer_id
        and asked.producer_epoch == LAST_EPOCH_SHOWN
        and known.producer_epoch == 0
    )


def _check_id(known: Transaction, asked: EndTransactionRequest, *, is_retry: bool) -> None:
    if asked.producer_id != known.client.producer_id and not is_retry:
        raise InvalidProducerIdMapping


def _check_epoch(known: Transaction, asked: EndTransactionRequest) -> None:
    if asked.producer_epoch != known.client.producer_epoch or known.client.is_for_markers_only:
        raise ProducerFenced


def _check_agrees(known: Transaction, asked: EndTransactionRequest) -> None:
    """Check a request after the decision: the same outcome is a retry, another outcome is an error."""
    if known.status is TransactionState.EMPTY:
        raise InvalidTxnState("no transaction is open")
    if known.status.is_prepared:
        raise ConcurrentTransactions
    if (known.status is TransactionState.COMPLETE_COMMIT) != asked.is_committed:
        raise InvalidTxnState(f"the transaction is in state {known.status.shown}")
