"""Producer state of one log: its idempotent and transactional producers.

For each producer: its epoch, its last five batches (to detect duplicate batches and gaps in the sequence), and its
open transaction in this log. The last stable offset follows from the open and the just completed transactions.

Changes are made in two steps, like the appends of the log: ``stage_*`` checks against committed *and* staged state and
keeps the new entry aside; `commit` applies it, `drop` discards it. Entries are never modified in place, so a rollback
only discards. Replaying a log at startup uses the same two steps with `AppendOrigin.REPLICATION`, which skips the
checks: the leader has made them.

Rules (KIP-98, KIP-360, KIP-890): an older epoch is rejected; a new epoch starts at sequence 0, unless the producer is
unknown, then any sequence is accepted; within an epoch the next sequence follows the last, wrapping from 2^31-1 to 0;
a batch equal to one of the last five is a duplicate; a marker's coordinator epoch does not go back.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from millbeck.kernel.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from millbeck.records.control import EndTransaction
from millbeck.storage.txn_index import AbortedTransaction

NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
PRODUCERS_MAX: Final = 20_000
"""The maximum number of producers that a log remembers, some 8 MiB."""
NO_OFFSET: Final = -1
REMEMBERED_BATCHES: Final = 5
PRODUCER_EPOCH_MAX: Final = 2**15 - 1
_SEQUENCE_MASK: Final = 2**31 - 1

BatchTrace = tuple[int, int, int, int]
"""Last sequence, last offset, offset delta, timestamp: a plain tuple, since one is created for every idempotent
batch.
"""


class AppendOrigin(Enum):
    """The origin of an append, which decides what is validated."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"
    QUORUM = "quorum"


_ENTRY_FIELDS: Final = (
    "batches",
    "coordinator_epoch",
    "epoch",
    "last_timestamp",
    "producer_id",
    "transaction_first_offset",
)


class ProducerStateEntry:
    """State of one producer on one partition; never modified, only replaced."""

    __slots__ = _ENTRY_FIELDS

    def __init__(
        self,
        producer_id: int,
        epoch: int,
        batches: tuple[BatchTrace, ...],
        last_timestamp: int,
        coordinator_epoch: int = -1,
        transaction_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches = batches
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.transaction_first_offset = transaction_first_offset

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][0] if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1][1] if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1][2] if self.batches else 0

    def _fields(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in _ENTRY_FIELDS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProducerStateEntry) and self._fields() == other._fields()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "ProducerEntry(" + ", ".join(f"{name}={getattr(self, name)}" for name in _ENTRY_FIELDS) + ")"


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerStateManager:
    __slots__ = ("_begun", "_completed", "_pending", "_unreplicated", "open_transactions", "producers")

    def __init__(self) -> None:
        self.producers: dict[int, ProducerStateEntry] = {}
        self.open_transactions: dict[int, int] = {}
        """The producer ids of open transactions by first offset, in offset order."""
        self._unreplicated: list[CompletedTransaction] = []
        self._pending: dict[int, ProducerStateEntry] = {}
        self._begun: list[tuple[int, int]] = []
        self._completed: list[CompletedTransaction] = []

    def stage_data(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        last_offset_delta: int,
        first_offset: int,
        timestamp: int,
        is_transactional: bool,
        origin: AppendOrigin,
    ) -> BatchTrace | None:
        """Stage a data batch, or return the batch it duplicates and change nothing.

        Raises `InvalidProducerEpoch`, `OutOfOrderSequenceNumber` or `InvalidTxnState`.
        """
        entry = self._pending.get(producer_id) or self.producers.get(producer_id)
        last_sequence = (base_sequence + last_offset_delta) & _SEQUENCE_MASK if base_sequence >= 0 else NO_SEQUENCE
        trace = (last_sequence, first_offset + last_offset_delta, last_offset_delta, timestamp)
        if entry is None:
            transaction_first_offset, coordinator_epoch = NO_OFFSET, NO_EPOCH
            batches: tuple[BatchTrace, ...] = (trace,)
        else:
            if origin is AppendOrigin.CLIENT and epoch == entry.epoch:
                for known in entry.batches:
                    if known[0] == last_sequence and known[2] == last_offset_delta:
                        return known
            if origin is not AppendOrigin.REPLICATION:
                self._check(entry, epoch, base_sequence, is_transactional, origin)
            transaction_first_offset, coordinator_epoch = entry.transaction_first_offset, entry.coordinator_epoch
            batches = (trace,) if epoch != entry.epoch else (*entry.batches[1 - REMEMBERED_BATCHES :], trace)
        if is_transactional and transaction_first_offset == NO_OFFSET:
            transaction_first_offset = first_offset
            self._begun.append((first_offset, producer_id))
        self._pending[producer_id] = ProducerStateEntry(
            producer_id, epoch, batches, timestamp, coordinator_epoch, transaction_first_offset
        )
        return None

    def stage_marker(
        self,
        producer_id: int,
        epoch: int,
        marker: EndTransaction,
        offset: int,
        timestamp: int,
        origin: AppendOrigin,
        transaction_version: int = 0,
    ) -> CompletedTransaction | None:
        """Stage a transaction marker; returns the transaction it ends, if one is open here.

        From transaction version 2 on a marker has an epoch above that of its data. The same epoch is accepted as a
        retry when no transaction is open, and when the maximum epoch is reached. Raises `InvalidProducerEpoch` or
        `TransactionCoordinatorFenced`.
        """
        entry = self._pending.get(producer_id) or self.producers.get(producer_id)
        if entry is None:
            entry = ProducerStateEntry(producer_id, NO_EPOCH, (), timestamp)
        elif origin is not AppendOrigin.REPLICATION:
            _check_marker(entry, epoch, marker, transaction_version)
        completed = None
        if entry.transaction_first_offset != NO_OFFSET:
            completed = CompletedTransaction(
                producer_id, entry.transaction_first_offset, offset, is_aborted=not marker.committed
            )
            self._completed.append(completed)
        batches = entry.batches if epoch == entry.epoch else ()
        self._pending[producer_id] = ProducerStateEntry(
            producer_id, epoch, batches, timestamp, marker.coordinator_epoch
        )
        return completed

    @property
    def has_staged(self) -> bool:
        return bool(self._pending)

    def latest(self, producer_id: int) -> ProducerStateEntry | None:
        """The latest state of a producer, staged or committed."""
        return self._pending.get(producer_id) or self.producers.get(producer_id)

    def commit(self) -> list[AbortedTransaction]:
        """Apply the staged state after its batches were written. Returns the new entries of the transaction index."""
        self.producers.update(self._pending)
        self._pending.clear()
        if len(self.producers) > PRODUCERS_MAX:
            self._forget_the_longest_idle()
        if self._begun:
            for first_offset, producer_id in self._begun:
                self.open_transactions[first_offset] = producer_id
            self._begun.clear()
        aborted: list[AbortedTransaction] = []
        if self._completed:
            for completed in self._completed:
                del self.open_transactions[completed.first_offset]
                self._unreplicated.append(completed)
                if completed.is_aborted:
                    aborted.append(self._index_entry(completed))
            self._completed.clear()
        return aborted

    def drop(self) -> None:
        """Discard the staged state, because its batches were not written."""
        self._pending.clear()
        self._begun.clear()
        self._completed.clear()

    def _index_entry(self, completed: CompletedTransaction) -> AbortedTransaction:
        """The transaction index entry of ``completed``, with the last stable offset now that it is no longer open."""
        stable = next(iter(self.open_transactions), completed.last_offset + 1)
        return AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable)

    def last_stable_offset(self, high_watermark: int) -> int:
        """The last stable offset: all records below it are of transactions that were decided below
        ``high_watermark``.
        """
        stable = high_watermark
        if self._unreplicated:
            self._unreplicated = [one for one in self._unreplicated if one.last_offset >= high_watermark]
            for completed in self._unreplicated:
                stable = min(stable, completed.first_offset)
        for first_offset in self.open_transactions:
            return min(stable, first_offset)
        return stable

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers that have been idle for ``expiration_ms`` and have no open transaction."""
        expired = [
            entry.producer_id
            for entry in self.producers.values()
            if entry.transaction_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]

    def _forget_the_longest_idle(self) -> None:
        """Forget a quarter of the producers, those that wrote longest ago and have no open transaction.

        Nothing checks that clients use ids which they were given: each new one costs memory until it expires. By
        offset, since clients choose the timestamps. A producer that is forgotten may go on, as after its expiration.
        """
        idle = [entry for entry in self.producers.values() if entry.transaction_first_offset == NO_OFFSET]
        idle.sort(key=lambda entry: entry.last_offset)
        for entry in idle[: PRODUCERS_MAX // 4]:
            del self.producers[entry.producer_id]

    def load(self, entries: list[ProducerStateEntry]) -> None:
        """Replace the state by a snapshot's entries."""
        self.clear()
        for entry in entries:
            self.producers[entry.producer_id] = entry
        opened = [entry for entry in entries if entry.transaction_first_offset != NO_OFFSET]
        for entry in sorted(opened, key=lambda entry: entry.transaction_first_offset):
            self.open_transactions[entry.transaction_first_offset] = entry.producer_id

    def clear(self) -> None:
        self.drop()
        self.producers.clear()
        self.open_transactions.clear()
        self._unreplicated.clear()

    @staticmethod
    def _check(
        entry: ProducerStateEntry, epoch: int, base_sequence: int, is_transactional: bool, origin: AppendOrigin
    ) -> None:
        if epoch < entry.epoch:
            raise InvalidProducerEpoch(
                f"producer {entry.producer_id} has the old epoch {epoch}, the current epoch is {entry.epoch}"
            )
        if origin is AppendOrigin.CLIENT:
            if epoch != entry.epoch:
                if base_sequence != 0 and entry.epoch != NO_EPOCH:
                    raise OutOfOrderSequenceNumber(
                        f"producer {entry.producer_id} starts epoch {epoch} with sequence {base_sequence}, not 0"
                    )
            elif base_sequence != ((entry.last_sequence + 1) & _SEQUENCE_MASK):
                raise OutOfOrderSequenceNumber(
                    f"producer {entry.producer_id} sent sequence {base_sequence} after {entry.last_sequence}"
                )
        if entry.transaction_first_offset != NO_OFFSET and not is_transactional:
            raise InvalidTxnState(
                f"producer {entry.producer_id} has an open transaction but sent a non-transactional batch"
            )


def _check_marker(entry: ProducerStateEntry, epoch: int, marker: EndTransaction, transaction_version: int) -> None:
    is_old = epoch < entry.epoch
    if transaction_version >= 2 and epoch == entry.epoch:
        is_old = entry.transaction_first_offset != NO_OFFSET and epoch != PRODUCER_EPOCH_MAX
    if is_old:
        raise InvalidProducerEpoch(
            f"the marker for producer {entry.producer_id} has the old epoch {epoch}, the current epoch is {entry.epoch}"
        )
    if marker.coordinator_epoch < entry.coordinator_epoch:
        raise TransactionCoordinatorFenced(
            f"the marker for producer {entry.producer_id} has the old coordinator epoch {marker.coordinator_epoch}, "
            f"the current one is {entry.coordinator_epoch}"
        )
