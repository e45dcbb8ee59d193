"""One transactional id: its producer, the state of its transaction, and each step it can take.

Values are never changed: a step makes the next one, which is what its record says. A producer's epoch goes up whenever
somebody else may have it (a new producer, a timeout), and from transaction version 2 on with the end of every
transaction (KIP-890), so that nothing that was delayed can be taken for part of a later one. The last epoch but one
ends a producer id: the next end, or the next producer, gets a new id.

A transaction may be kept for the producer that comes next (KIP-939): it stays open under the id and epoch that wrote
it, which its markers will carry, while the producer that is to end it has a pair of its own, the *next* one. Whoever
asks is compared with that one (`client`); the transaction's end makes it the only one again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from millbeck.coordinator.transaction.status import Status
from millbeck.kernel.errors import ProducerFenced
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import INT_MAX

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
EPOCH_MAX: Final = 2**15 - 1
LAST_EPOCH_SHOWN: Final = EPOCH_MAX - 1
"""The last epoch a producer is ever given; the one above it is for the marker that ends its last transaction."""
EPOCH_BUMP_VERSION: Final = 2
"""From this transaction version on the epoch goes up with the end of every transaction."""


class ProducerPair(NamedTuple):
    """What a producer says it is."""

    producer_id: int
    producer_epoch: int

    @property
    def is_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH_SHOWN

    def bumped(self, new_producer_id: int) -> ProducerPair:
        """The pair after it; the new id is for one that has used up its epochs."""
        if self.is_exhausted:
            return ProducerPair(new_producer_id, 0)
        return ProducerPair(self.producer_id, self.producer_epoch + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: Status = Status.EMPTY
    partitions: Mapping[TopicPartition, None] = field(default_factory=dict)
    start_timestamp_ms: int = NO_TIMESTAMP
    update_timestamp_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The id to go on with once this transaction, the last of its producer's epochs, is complete; of a transaction that
    is kept, the id of the producer that is to end it."""
    next_producer_epoch: int = NO_EPOCH
    """Of a transaction that is kept: the epoch of the producer that is to end it."""
    last_producer_epoch: int = NO_EPOCH
    """The epoch before the last change of it, which a retried request may still carry. Not in the log."""
    client_version: int = 0
    """The transaction version of the client that began or ended the last transaction."""

    @property
    def is_kept(self) -> bool:
        """Left open for another producer than the one that wrote it."""
        return self.next_producer_epoch != NO_EPOCH

    @property
    def client(self) -> ProducerPair:
        """What the producer that has the transactional id now says it is."""
        if self.is_kept:
            return ProducerPair(self.next_producer_id, self.next_producer_epoch)
        return ProducerPair(self.producer_id, self.producer_epoch)

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= EPOCH_BUMP_VERSION

    @property
    def is_without_timeout(self) -> bool:
        """Prepared and ended by whoever coordinates a two-phase commit (KIP-939)."""
        return self.timeout_ms == INT_MAX

    def is_timed_out(self, now_ms: int) -> bool:
        return (
            self.status is Status.ONGOING
            and not self.is_without_timeout
            and self.start_timestamp_ms + self.timeout_ms < now_ms
        )

    # A new producer

    def with_next_epoch(self, *, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Transaction:
        """For a new producer, or for one that lost track and says which epoch it has; raises `ProducerFenced`."""
        if expected_epoch is None:
            epoch, last_epoch = self.producer_epoch + 1, NO_EPOCH
        elif self.producer_epoch in (NO_EPOCH, expected_epoch):
            epoch, last_epoch = self.producer_epoch + 1, self.producer_epoch
        elif expected_epoch == self.last_producer_epoch:
            # A retry of a request whose answer was lost.
            epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        else:
            raise ProducerFenced
        return self._idle(timeout_ms, now_ms, producer_id=self.producer_id, epoch=epoch, last_epoch=last_epoch)

    def with_new_id(self, producer_id: int, *, timeout_ms: int, keeps_last_epoch: bool, now_ms: int) -> Transaction:
        """The epochs of the old id are used up."""
        last_epoch = self.producer_epoch if keeps_last_epoch else NO_EPOCH
        return self._idle(timeout_ms, now_ms, producer_id=producer_id, epoch=0, last_epoch=last_epoch)

    def _idle(self, timeout_ms: int, now_ms: int, *, producer_id: int, epoch: int, last_epoch: int) -> Transaction:
        return replace(
            self,
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            next_producer_epoch=NO_EPOCH,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            status=Status.EMPTY,
            partitions={},
            start_timestamp_ms=NO_TIMESTAMP,
            update_timestamp_ms=now_ms,
        )

    def kept(self, new_producer_id: int, *, timeout_ms: int, now_ms: int) -> Transaction:
        """For a new producer that is to end the open transaction: it stays what it is, and its producer is fenced."""
        assert self.status is Status.ONGOING, "only what is open is kept"
        after = self.client.bumped(new_producer_id)
        return replace(
            self,
            next_producer_id=after.producer_id,
            next_producer_epoch=after.producer_epoch,
            last_producer_epoch=NO_EPOCH,
            timeout_ms=timeout_ms,
            update_timestamp_ms=now_ms,
        )

    # A transaction's life

    def with_partitions(self, added: Iterable[TopicPartition], *, client_version: int, now_ms: int) -> Transaction:
        """Begins the transaction with the first of them."""
        return replace(
            self,
            status=Status.ONGOING,
            partitions={**self.partitions, **dict.fromkeys(added)},
            start_timestamp_ms=self.start_timestamp_ms if self.status is Status.ONGOING else now_ms,
            update_timestamp_ms=now_ms,
            previous_producer_id=self.producer_id,
            client_version=client_version,
        )

    def prepared(
        self, *, is_committed: bool, client_version: int, next_producer_id: int = NO_PRODUCER_ID, now_ms: int
    ) -> Transaction:
        """Decided: what the client that ends it asked for. ``next_producer_id`` is for one that used up its epochs."""
        if self.is_kept:
            return self._kept_and_prepared(is_committed, client_version, next_producer_id, now_ms)
        is_bumped = client_version >= EPOCH_BUMP_VERSION
        return replace(
            self,
            status=Status.PREPARE_COMMIT if is_committed else Status.PREPARE_ABORT,
            producer_epoch=self.producer_epoch + 1 if is_bumped else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if is_bumped else self.last_producer_epoch,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            start_timestamp_ms=self.start_timestamp_ms if self.status is Status.ONGOING else now_ms,
            update_timestamp_ms=now_ms,
            client_version=client_version,
        )

    def _kept_and_prepared(
        self, is_committed: bool, client_version: int, new_producer_id: int, now_ms: int
    ) -> Transaction:
        """The markers go out under the pair that wrote the transaction; who ended it gets the pair after its own."""
        client = self.client
        after = client.bumped(new_producer_id)
        return replace(
            self,
            status=Status.PREPARE_COMMIT if is_committed else Status.PREPARE_ABORT,
            producer_epoch=self.producer_epoch + 1,
            last_producer_epoch=client.producer_epoch,
            previous_producer_id=client.producer_id,
            next_producer_id=after.producer_id,
            next_producer_epoch=after.producer_epoch,
            update_timestamp_ms=now_ms,
            client_version=client_version,
        )

    def fenced(self, *, client_version: int, now_ms: int) -> Transaction:
        """Aborted over its producer's head: nothing with the epoch it has counts any more."""
        assert self.producer_epoch < EPOCH_MAX, "an epoch beyond the last"
        assert self.next_producer_epoch < EPOCH_MAX, "an epoch beyond the last"
        return replace(
            self,
            status=Status.PREPARE_ABORT,
            producer_epoch=self.producer_epoch + 1,
            last_producer_epoch=NO_EPOCH,
            previous_producer_id=self.client.producer_id,
            next_producer_epoch=self.next_producer_epoch + 1 if self.is_kept else NO_EPOCH,
            update_timestamp_ms=now_ms,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Every partition has its marker."""
        has_next = self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            status=Status.COMPLETE_COMMIT if self.status is Status.PREPARE_COMMIT else Status.COMPLETE_ABORT,
            producer_id=self.next_producer_id if has_next else self.producer_id,
            previous_producer_id=self.previous_producer_id if self.is_kept else self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            next_producer_epoch=NO_EPOCH,
            producer_epoch=self._epoch_after(),
            partitions={},
            update_timestamp_ms=now_ms,
        )

    def _epoch_after(self) -> int:
        if self.is_kept:
            return self.next_producer_epoch
        return self.producer_epoch if self.next_producer_id == NO_PRODUCER_ID else 0
