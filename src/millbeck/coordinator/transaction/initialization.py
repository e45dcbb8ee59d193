"""InitProducerId: a producer takes a transactional id over, and whoever had it before is fenced.

An open transaction of the one before is aborted first: the answer is CONCURRENT_TRANSACTIONS until that is complete,
and the producer asks again. A producer that says which id and epoch it has (KIP-360) wants the next epoch of its own,
and is refused when somebody else has taken over.

A producer that takes part in a two-phase commit may ask for the open transaction to be kept (KIP-939): it stays open,
the producer learns whose it is, and ends it as whoever coordinates the commit has decided.
"""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.coordinator.transaction.status import Status
from millbeck.coordinator.transaction.transaction import (
    LAST_EPOCH_SHOWN,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
)
from millbeck.kernel.errors import ConcurrentTransactions, CoordinatorNotAvailable, ProducerFenced


class NeedsProducerId(CoordinatorNotAvailable):
    """The operation is to be tried again with a new producer id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialisation:
    """What a producer asks for; ``expected`` is the id and epoch that it holds already."""

    transactional_id: str
    timeout_ms: int
    expected: tuple[int, int] | None = None
    new_producer_id: int | None = None
    """An id that nobody has, if one is needed."""
    keeps_prepared: bool = False
    """Leave an open transaction as it is, for this producer to end."""

    def take_new_id(self) -> int:
        if self.new_producer_id is None:
            raise NeedsProducerId
        return self.new_producer_id


def begin(asked: Initialisation, now_ms: int) -> Transaction:
    """For a transactional id that is not known: nothing of it is in the log yet."""
    return Transaction(
        transactional_id=asked.transactional_id,
        producer_id=asked.take_new_id(),
        producer_epoch=NO_EPOCH,
        timeout_ms=asked.timeout_ms,
        update_timestamp_ms=now_ms,
    )


def initialise(known: Transaction, asked: Initialisation, *, fence_version: int, now_ms: int) -> Transaction:
    """The id's next state; a prepared abort when an open transaction is in the way and is not to be kept.

    ``fence_version`` is the transaction version of the cluster, which the abort is made under.
    """
    if asked.expected is not None and not _may_have(known, *asked.expected):
        raise ProducerFenced
    if known.status is Status.ONGOING and asked.keeps_prepared:
        new_producer_id = asked.take_new_id() if known.client.is_exhausted else NO_PRODUCER_ID
        return known.kept(new_producer_id, timeout_ms=asked.timeout_ms, now_ms=now_ms)
    if known.status is Status.ONGOING:
        return known.fenced(client_version=fence_version, now_ms=now_ms)
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
    """Whether the producer that says so can be the one the id belongs to. Its epoch is looked at later, but for one
    that has used up its epochs and did not hear of its new id, and one whose transaction is kept for another."""
    if known.is_kept:
        return known.client == (producer_id, producer_epoch)
    return (
        known.producer_epoch == NO_EPOCH
        or producer_id == known.producer_id
        or (producer_id == known.previous_producer_id != NO_PRODUCER_ID and producer_epoch >= LAST_EPOCH_SHOWN)
    )
