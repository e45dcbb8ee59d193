"""InitProducerId: a producer takes over a transactional id, which fences the previous producer.

An open transaction of the previous producer is aborted first: the response is CONCURRENT_TRANSACTIONS until the abort
is complete, and the producer retries. If the abort exhausts the epochs of the producer id, the id is replaced when the
abort is complete, as in Kafka with transaction version 2, or with a lower version when the producer retries.

A producer that sends its id and epoch (KIP-360) gets the next epoch of its id, and is fenced if another producer has
taken over.

A producer in a two-phase commit may keep the open transaction (KIP-939): it stays open, the response has its producer
id and epoch, and the producer ends it as the external coordinator has decided.
"""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import (
    EPOCH_BUMP_VERSION,
    LAST_EPOCH_SHOWN,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
)
from millbeck.kernel.errors import ConcurrentTransactions, CoordinatorNotAvailable, ProducerFenced


class ProducerIdRequired(CoordinatorNotAvailable):
    """Retry the operation with a new producer id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialisation:
    """The parameters of an InitProducerId request; ``expected`` is the id and epoch the producer has already."""

    transactional_id: str
    timeout_ms: int
    expected: tuple[int, int] | None = None
    new_producer_id: int | None = None
    """An unused producer id, if one is needed."""
    keeps_prepared: bool = False
    """Keep an open transaction, for this producer to end."""

    def take_new_id(self) -> int:
        if self.new_producer_id is None:
            raise ProducerIdRequired
        return self.new_producer_id


def begin(asked: Initialisation, now_ms: int) -> Transaction:
    """The first state of a transactional id that has no records yet."""
    return Transaction(
        transactional_id=asked.transactional_id,
        producer_id=asked.take_new_id(),
        producer_epoch=NO_EPOCH,
        timeout_ms=asked.timeout_ms,
        update_timestamp_ms=now_ms,
    )


def initialise(known: Transaction, asked: Initialisation, *, fence_version: int, now_ms: int) -> Transaction:
    """The next state; a prepared abort if a transaction is open and is not to be kept.

    ``fence_version`` is the cluster's transaction version, with which the abort is made.
    """
    if asked.expected is not None and not _may_have(known, *asked.expected):
        raise ProducerFenced
    if known.status is TransactionState.ONGOING and asked.keeps_prepared:
        new_producer_id = asked.take_new_id() if known.client.is_exhausted else NO_PRODUCER_ID
        return known.kept(new_producer_id, timeout_ms=asked.timeout_ms, now_ms=now_ms)
    if known.status is TransactionState.ONGOING:
        is_rotated = known.client.is_exhausted and fence_version >= EPOCH_BUMP_VERSION
        new_producer_id = asked.take_new_id() if is_rotated else NO_PRODUCER_ID
        return known.fenced(client_version=fence_version, new_producer_id=new_producer_id, now_ms=now_ms)
    if not known.status.is_idle:
        raise ConcurrentTransactions
    expected_epoch = None if asked.expected is None else asked.expected[1]
    if known.client.is_exhausted and expected_epoch in (None, known.producer_epoch):
        return known.with_new_id(
            asked.take_new_id(),
            timeout_ms=asked.timeout_ms,
            keeps_last_epoch=expected_epoch is not None,
            now_ms=now_ms,
        )
    return known.with_next_epoch(timeout_ms=asked.timeout_ms, expected_epoch=expected_epoch, now_ms=now_ms)


def _may_have(known: Transaction, producer_id: int, producer_epoch: int) -> bool:
    """Whether the producer can be the id's current one. The epoch is checked later, except for a producer that has
    exhausted its epochs and did not receive its new id, and when a transaction is kept for another producer."""
    if known.is_kept:
        return known.client == (producer_id, producer_epoch)
    return (
        known.producer_epoch == NO_EPOCH
        or producer_id == known.producer_id
        or (producer_id == known.previous_producer_id != NO_PRODUCER_ID and producer_epoch >= LAST_EPOCH_SHOWN)
    )
