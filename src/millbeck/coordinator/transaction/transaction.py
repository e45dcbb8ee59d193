"""One transactional id: its producer, the state of its transaction, and the transitions.

Immutable: a transition returns the next value, which is written as a record. A producer's epoch is bumped whenever
another producer may have it (a new producer, a timeout), and from transaction version 2 on with the end of every
transaction (KIP-890), so that a delayed request cannot become part of a later transaction. The second highest epoch
exhausts a producer id: the next end, or the next producer, gets a new id.

A transaction may be kept for the next producer (KIP-939): it stays open under the id and epoch that wrote it, which its
markers will carry, while the producer that is to end it has its own pair, the *next* one. Requests are validated
against that pair (`client`); when the transaction ends it becomes the only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from millbeck.coordinator.transaction.status import TransactionState
from millbeck.kernel.errors import ProducerFenced
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import INT_MAX

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
EPOCH_MAX: Final = 2**15 - 1
LAST_EPOCH_SHOWN: Final = EPOCH_MAX - 1
"""The highest epoch given to a producer; the one above it is for the marker that ends its last transaction."""
EPOCH_BUMP_VERSION: Final = 2
"""From this transaction version on, every end of a transaction bumps the epoch."""


class ProducerPair(NamedTuple):
    """Producer id and epoch."""

    producer_id: int
    producer_epoch: int

    @property
    def is_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH_SHOWN

    @property
    def is_for_markers_only(self) -> bool:
        """Whether this is the highest epoch: no producer is given it, so requests with it are rejected."""
        return self.producer_epoch >= EPOCH_MAX

    def bumped(self, new_producer_id: int) -> ProducerPair:
        """The next pair; the new id is used if the epochs are exhausted."""
        if self.is_exhausted:
            return ProducerPair(new_producer_id, 0)
        return ProducerPair(self.producer_id, self.producer_epoch + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: TransactionState = TransactionState.EMPTY
    partitions: Mapping[TopicPartition, None] = field(default_factory=dict)
    start_timestamp_ms: int = NO_TIMESTAMP
    update_timestamp_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id to use once this transaction, with the last usable epoch, is complete; if the transaction is
    kept, the id of the producer that is to end it."""
    next_producer_epoch: int = NO_EPOCH
    """If the transaction is kept, the epoch of the producer that is to end it."""
    last_producer_epoch: int = NO_EPOCH
    """The previous epoch, which a retried request may still have. Not in the log."""
    client_version: int = 0
    """Transaction version of the client that began or ended the last transaction."""

    @property
    def is_kept(self) -> bool:
        """Whether the transaction stays open for another producer than the one that wrote it."""
        return self.next_producer_epoch != NO_EPOCH

    @property
    def client(self) -> ProducerPair:
        """Id and epoch of the producer that has the transactional id now."""
        if self.is_kept:
            return ProducerPair(self.next_producer_id, self.next_producer_epoch)
        return ProducerPair(self.producer_id, self.producer_epoch)

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= EPOCH_BUMP_VERSION

    @property
    def is_without_timeout(self) -> bool:
        """Whether the transaction belongs to an external two-phase commit (KIP-939), so that it never times out."""
        return self.timeout_ms == INT_MAX

    def is_timed_out(self, now_ms: int) -> bool:
        return (
            self.status is TransactionState.ONGOING
            and not self.is_without_timeout
            and self.start_timestamp_ms + self.timeout_ms < now_ms
        )

    # A new producer

    def with_next_epoch(self, *, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Transaction:
        """The next state for a new producer, or for one that sends its epoch to recover; raises `ProducerFenced`."""
        if expected_epoch is None:
            epoch, last_epoch = self.producer_epoch + 1, NO_EPOCH
        elif self.producer_epoch in (NO_EPOCH, expected_epoch):
            epoch, last_epoch = self.producer_epoch + 1, self.producer_epoch
        elif expected_epoch == self.last_producer_epoch:
            # A retry of a request whose response was lost.
            epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        else:
            raise ProducerFenced
        return self._idle(timeout_ms, now_ms, producer_id=self.producer_id, epoch=epoch, last_epoch=last_epoch)

    def with_new_id(self, producer_id: int, *, timeout_ms: int, keeps_last_epoch: bool, now_ms: int) -> Transaction:
        """The next state with a new producer id, since the epochs of the old one are exhausted."""
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
            status=TransactionState.EMPTY,
            partitions={},
            start_timestamp_ms=NO_TIMESTAMP,
            update_timestamp_ms=now_ms,
        )

    def kept(self, new_producer_id: int, *, timeout_ms: int, now_ms: int) -> Transaction:
        """The next state with the open transaction kept for a new producer to end; the old producer is fenced."""
        assert self.status is TransactionState.ONGOING, "only an open transaction can be kept"
        after = self.client.bumped(new_producer_id)
        return replace(
            self,
            next_producer_id=after.producer_id,
            next_producer_epoch=after.producer_epoch,
            last_producer_epoch=NO_EPOCH,
            timeout_ms=timeout_ms,
            update_timestamp_ms=now_ms,
        )

    # Transitions of a transaction

    def with_partitions(self, added: Iterable[TopicPartition], *, client_version: int, now_ms: int) -> Transaction:
        """Add partitions; the first ones begin the transaction."""
        return replace(
            self,
            status=TransactionState.ONGOING,
            partitions={**self.partitions, **dict.fromkeys(added)},
            start_timestamp_ms=self.start_timestamp_ms if self.status is TransactionState.ONGOING else now_ms,
            update_timestamp_ms=now_ms,
            previous_producer_id=self.producer_id,
            client_version=client_version,
        )

    def prepared(
        self, *, is_committed: bool, client_version: int, next_producer_id: int = NO_PRODUCER_ID, now_ms: int
    ) -> Transaction:
        """The prepared state that a client requested. ``next_producer_id`` is the new id if the epochs are
        exhausted."""
        if self.is_kept:
            return self._kept_and_prepared(is_committed, client_version, next_producer_id, now_ms)
        is_bumped = client_version >= EPOCH_BUMP_VERSION
        return replace(
            self,
            status=TransactionState.PREPARE_COMMIT if is_committed else TransactionState.PREPARE_ABORT,
            producer_epoch=self.producer_epoch + 1 if is_bumped else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if is_bumped else self.last_producer_epoch,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            start_timestamp_ms=self.start_timestamp_ms if self.status is TransactionState.ONGOING else now_ms,
            update_timestamp_ms=now_ms,
            client_version=client_version,
        )

    def _kept_and_prepared(
        self, is_committed: bool, client_version: int, new_producer_id: int, now_ms: int
    ) -> Transaction:
        """Prepare a kept transaction: markers use the producer id and epoch that wrote it; the producer that ended it
        gets the pair after its own."""
        client = self.client
        after = client.bumped(new_producer_id)
        return replace(
            self,
            status=TransactionState.PREPARE_COMMIT if is_committed else TransactionState.PREPARE_ABORT,
            producer_epoch=self._marker_epoch,
            last_producer_epoch=client.producer_epoch,
            previous_producer_id=client.producer_id,
            next_producer_id=after.producer_id,
            next_producer_epoch=after.producer_epoch,
            update_timestamp_ms=now_ms,
            client_version=client_version,
        )

    def fenced(self, *, client_version: int, new_producer_id: int = NO_PRODUCER_ID, now_ms: int) -> Transaction:
        """Prepare an abort by the broker, which fences the producer's epoch.

        A producer that has exhausted its epochs gets ``new_producer_id`` once the abort is complete. Without one it
        stays at the highest epoch, with which nothing can be written, and the next producer gets a new id.
        """
        after = self.client.bumped(new_producer_id)
        if after.producer_id == NO_PRODUCER_ID:
            after = ProducerPair(self.client.producer_id, EPOCH_MAX)
        is_rotated = after.producer_id != self.client.producer_id
        return replace(
            self,
            status=TransactionState.PREPARE_ABORT,
            producer_epoch=self._marker_epoch,
            last_producer_epoch=NO_EPOCH,
            previous_producer_id=self.client.producer_id,
            next_producer_id=after.producer_id if self.is_kept or is_rotated else NO_PRODUCER_ID,
            next_producer_epoch=after.producer_epoch if self.is_kept else NO_EPOCH,
            update_timestamp_ms=now_ms,
            client_version=client_version,
        )

    @property
    def _marker_epoch(self) -> int:
        """The next epoch for the marker; a log may contain a transaction that began with the highest epoch."""
        return min(self.producer_epoch + 1, EPOCH_MAX)

    def completed(self, now_ms: int) -> Transaction:
        """The complete state, once every partition has its marker."""
        has_next = self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            status=TransactionState.COMPLETE_COMMIT
            if self.status is TransactionState.PREPARE_COMMIT
            else TransactionState.COMPLETE_ABORT,
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
