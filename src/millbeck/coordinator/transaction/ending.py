"""EndTxn: which requests may end a transaction, and which are retries of one that did.

While the markers of a decided transaction are under way everybody is told to come back, CONCURRENT_TRANSACTIONS: its
producer may have heard of the decision, begun the next one and given it up, all before they are written.

Version 1 of transactions: the epoch is the producer's, exactly. A transaction that is complete is answered as such.

Version 2: the end bumps the epoch. A request with the epoch before the present one is a retry, which is answered with
the present id and epoch, and only while no later transaction has begun: it can touch nothing else. An abort of what has
not begun is allowed, since a producer does not know whether any of its writes arrived.

A transaction that is kept (KIP-939) is ended by the producer it was kept for, which has version 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.coordinator.transaction.initialising import NeedsProducerId
from millbeck.coordinator.transaction.status import Status
from millbeck.coordinator.transaction.transaction import (
    EPOCH_BUMP_VERSION,
    EPOCH_MAX,
    LAST_EPOCH_SHOWN,
    NO_PRODUCER_ID,
    Transaction,
)
from millbeck.kernel.errors import ConcurrentTransactions, InvalidProducerIdMapping, InvalidTxnState, ProducerFenced


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What a producer asks for."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_committed: bool
    client_version: int
    new_producer_id: int | None = None
    """An id that nobody has, if one is needed."""


def end(known: Transaction, asked: Ending, now_ms: int) -> Transaction | None:
    """The prepared transaction; None when it is complete already, as a retry may find it."""
    if asked.client_version >= EPOCH_BUMP_VERSION:
        return _end_and_bump(known, asked, now_ms)
    if known.is_kept:
        raise InvalidTxnState("a transaction that was kept is ended under transaction version 2")
    _check_id(known, asked, is_retry=False)
    if asked.producer_epoch != known.producer_epoch:
        raise ProducerFenced
    if known.status is Status.ONGOING:
        return known.prepared(is_committed=asked.is_committed, client_version=asked.client_version, now_ms=now_ms)
    _check_agrees(known, asked)
    return None


def _end_and_bump(known: Transaction, asked: Ending, now_ms: int) -> Transaction | None:
    if known.status.is_prepared:
        raise ConcurrentTransactions
    is_retry = _is_retry(known, asked)
    _check_id(known, asked, is_retry=is_retry)
    if not is_retry and asked.producer_epoch != known.client.producer_epoch:
        raise ProducerFenced
    if known.status is Status.ONGOING:
        return _prepared(known, asked, now_ms)
    if not is_retry and not asked.is_committed and known.status.is_idle:
        return _prepared(known, asked, now_ms)
    if not is_retry and known.status.is_idle and known.bumps_epochs:
        raise InvalidTxnState("there is nothing to commit")
    _check_agrees(known, asked)
    return None


def _prepared(known: Transaction, asked: Ending, now_ms: int) -> Transaction:
    next_producer_id = NO_PRODUCER_ID
    if known.client.is_exhausted:
        if asked.new_producer_id is None:
            raise NeedsProducerId
        next_producer_id = asked.new_producer_id
    return known.prepared(
        is_committed=asked.is_committed,
        client_version=asked.client_version,
        next_producer_id=next_producer_id,
        now_ms=now_ms,
    )


def _is_retry(known: Transaction, asked: Ending) -> bool:
    """Whether the request has ended the last transaction already, and its producer has not heard of it."""
    if not known.bumps_epochs or known.status in (Status.ONGOING, Status.EMPTY):
        return False
    if asked.producer_id == known.producer_id:
        # The highest epoch is nobody's: whoever was fenced with the last epoch there is begins anew.
        return asked.producer_epoch + 1 == known.producer_epoch < EPOCH_MAX
    return (
        asked.producer_id == known.previous_producer_id
        and asked.producer_epoch == LAST_EPOCH_SHOWN
        and known.producer_epoch == 0
    )


def _check_id(known: Transaction, asked: Ending, *, is_retry: bool) -> None:
    if asked.producer_id != known.client.producer_id and not is_retry:
        raise InvalidProducerIdMapping


def _check_agrees(known: Transaction, asked: Ending) -> None:
    """The transaction is decided: the same decision is a retry, another one a mistake."""
    if known.status is Status.EMPTY:
        raise InvalidTxnState("no transaction is open")
    if known.status.is_prepared:
        raise ConcurrentTransactions
    if (known.status is Status.COMPLETE_COMMIT) != asked.is_committed:
        raise InvalidTxnState(f"the transaction is in state {known.status.shown}")
