"""The shard of one ``__transaction_state`` partition: the transactional ids that hash to it.

Each public method is one operation for `ShardRunner`. Theory of operation: an operation writes a record of the id's
next state, and replaying the record changes it. The decision to commit or abort is such a record (a prepared state);
its markers are sent once it is committed (`Result.on_committed`, or after a reload, once the loaded records are
committed), and the record that completes the transaction is written when every partition has its marker. No step
depends on memory alone: after a crash it resumes from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.sweep import Sweep
from millbeck.coordinator.runtime.timer import Timers
from millbeck.coordinator.transaction import listing, records
from millbeck.coordinator.transaction.ending import EndTransactionRequest, end
from millbeck.coordinator.transaction.initialization import Initialisation, begin, initialise
from millbeck.coordinator.transaction.markers import Markers, MarkerSender
from millbeck.coordinator.transaction.records import TransactionRecord
from millbeck.coordinator.transaction.status import TransactionState, is_valid_transition
from millbeck.coordinator.transaction.transaction import (
    EPOCH_BUMP_VERSION,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
)
from millbeck.kernel.errors import (
    NONE,
    ApiError,
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    TransactionAbortable,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.timeline import SnapshotRegistry, TimelineDict
from millbeck.wire.messages import transactions as transactions_messages

TIMEOUTS_KEY = ("abort-timed-out",)
EXPIRY_KEY = ("expire-ids",)
PARTITIONS_PER_WEIGHT = 16
"""Weight of an abort, relative to visiting one transactional id."""


class ProducerIdResult(NamedTuple):
    """The producer id and epoch of an InitProducerId response."""

    producer_id: int
    producer_epoch: int
    error_code: int = NONE
    ongoing_producer_id: int = NO_PRODUCER_ID
    ongoing_producer_epoch: int = NO_EPOCH
    """Producer id and epoch of the kept transaction."""


TransactionResult = Result[TransactionRecord, ProducerIdResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionShardOptions:
    abort_check_interval_ms: Callable[[], int] = field(default=lambda: 10_000)
    id_expiration_ms: Callable[[], int] = field(default=lambda: 7 * 86_400_000)
    expiration_check_interval_ms: Callable[[], int] = field(default=lambda: 3_600_000)
    transaction_version: Callable[[], int] = field(default=lambda: 2)
    """The cluster's transaction version; it determines the record version and how the broker aborts transactions."""
    spare_producer_id: Callable[[], int | None] = field(default=lambda: None)
    """Returns an unused producer id, or None if none is available."""


class TransactionShard:
    def __init__(
        self,
        registry: SnapshotRegistry,
        timers: Timers[TransactionRecord],
        options: TransactionShardOptions,
        sender: MarkerSender,
    ) -> None:
        self._options = options
        self._timers = timers
        self._sender = sender
        self._transactions: TimelineDict[str, Transaction] = TimelineDict(registry)
        self._aborting = Sweep(
            timers,
            TIMEOUTS_KEY,
            self._abort_if_timed_out,
            keys=lambda: self._transactions,
            interval_ms=options.abort_check_interval_ms,
            weight=self._partition_weight,
        )
        self._expiring = Sweep(
            timers,
            EXPIRY_KEY,
            self._expire,
            keys=lambda: self._transactions,
            interval_ms=options.expiration_check_interval_ms,
        )
        self.timed_out_count = 0

    # Records

    def encode(self, record: TransactionRecord) -> tuple[bytes, bytes | None]:
        return records.encode(record)

    def decode(self, key: bytes, value: bytes | None) -> TransactionRecord | None:
        return records.decode(key, value)

    def replay(self, record: TransactionRecord, *, offset: int, producer_id: int) -> None:
        if record.transaction is None:
            self._transactions.pop(record.transactional_id, None)
        else:
            self._transactions[record.transactional_id] = record.transaction

    def replay_end_transaction(self, *, producer_id: int, is_committed: bool) -> None:
        """Do nothing: transactions do not write to this topic."""

    def on_loaded(self, now_ms: int) -> None:
        self._aborting.start()
        self._expiring.start()
        for transaction in list(self._transactions.values()):
            if transaction.status.is_prepared:
                self._send(Markers.of(transaction))

    def _send(self, markers: Markers) -> None:
        """Send markers; an error delays only this transaction, until the shard is reloaded."""
        self._timers.isolation.run(("send markers", markers.transactional_id), partial(self._sender.send, markers))

    def on_unloaded(self, error: ApiError) -> None:
        """Do nothing: requests that wait for markers are completed by the sender."""

    # Operations of producers

    def init_producer_id(self, asked: Initialisation, now_ms: int) -> TransactionResult:
        known = self._transactions.get(asked.transactional_id)
        if known is None:
            known = begin(asked, now_ms)
        after = initialise(known, asked, fence_version=self._fence_version(), now_ms=now_ms)
        if after.status is TransactionState.PREPARE_ABORT:
            # The producer retries when the open transaction has ended.
            return self._decided(after, ConcurrentTransactions.code)
        answer = ProducerIdResult(*after.client)
        if after.is_kept:
            answer = answer._replace(ongoing_producer_id=after.producer_id, ongoing_producer_epoch=after.producer_epoch)
        # The record of an open transaction is written whatever its size.
        return Result(records=[self._record(after)], response=answer, is_size_limited=not after.partitions)

    def _fence_version(self) -> int:
        """Transaction version of aborts by the broker: higher versions end transactions as version 2 does."""
        return min(self._options.transaction_version(), EPOCH_BUMP_VERSION)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        client_version: int,
        now_ms: int,
    ) -> Result[TransactionRecord, int]:
        """Add partitions; returns an error code, 0 for none."""
        known = _writable(self._transactions.get(transactional_id), producer_id, producer_epoch)
        if known.status is TransactionState.ONGOING and all(each in known.partitions for each in partitions):
            return Result(response=NONE)
        after = known.with_partitions(partitions, client_version=client_version, now_ms=now_ms)
        return Result(records=[self._record(after)], response=NONE)

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        at: int,
    ) -> Mapping[TopicPartition, int]:
        """Verify that partitions are part of the open transaction as of an offset; returns error codes.

        It reads committed state, so it need not wait; raises `ConcurrentTransactions` if the result depends on
        uncommitted state.
        """

        def verify(known: Transaction | None) -> Mapping[TopicPartition, int] | ApiError:
            try:
                writable = _writable(known, producer_id, producer_epoch)
            except ApiError as error:
                return error
            return {each: NONE if each in writable.partitions else TransactionAbortable.code for each in partitions}

        committed = verify(self._transactions.get_at(transactional_id, at))
        latest = verify(self._transactions.get(transactional_id))
        if isinstance(committed, ApiError):
            raise committed if type(latest) is type(committed) else ConcurrentTransactions()
        if latest != committed:
            raise ConcurrentTransactions
        return committed

    def end(self, asked: EndTransactionRequest, now_ms: int) -> TransactionResult:
        known = self._transactions.get(asked.transactional_id)
        if known is None:
            raise InvalidProducerIdMapping
        after = end(known, asked, now_ms)
        if after is None:
            return Result(response=ProducerIdResult(known.producer_id, known.producer_epoch))
        return self._decided(after)

    # Markers

    def _decided(self, after: Transaction, error_code: int = NONE) -> TransactionResult:
        """Build the result of a prepared state: once it is committed, markers are sent and the producer gets its
        response."""
        markers = Markers.of(after)
        producer = ProducerIdResult(*after.client, error_code)
        if after.next_producer_id != NO_PRODUCER_ID and not after.is_kept:
            producer = ProducerIdResult(after.next_producer_id, 0, error_code)
        return Result(
            records=[self._record(after)],
            response=producer,
            is_size_limited=False,
            on_committed=lambda _: self._send(markers),
        )

    def complete(self, markers: Markers, now_ms: int) -> Result[TransactionRecord, bool]:
        """Complete a transaction that has all its markers; False if the markers belong to another transaction."""
        known = self._transactions.get(markers.transactional_id)
        if known is None or not known.status.is_prepared or Markers.of(known) != markers:
            return Result(response=False)
        return Result(records=[self._record(known.completed(now_ms))], response=True, is_size_limited=False)

    def _record(self, after: Transaction) -> TransactionRecord:
        before = self._transactions.get(after.transactional_id)
        assert before is None or is_valid_transition(before.status, after.status), (before, after)
        version = 1 if self._options.transaction_version() >= 1 else 0
        return TransactionRecord(after.transactional_id, after, version)

    # Transaction timeouts and expiration of transactional ids

    def _abort_if_timed_out(self, transactional_id: str, now_ms: int) -> Result[TransactionRecord, None] | None:
        known = self._transactions.get(transactional_id)
        if known is None or not known.is_timed_out(now_ms):
            return None
        version = self._fence_version()
        new_producer_id = None
        if known.client.is_exhausted and version >= EPOCH_BUMP_VERSION:
            new_producer_id = self._options.spare_producer_id()
        after = known.fenced(
            client_version=version,
            new_producer_id=NO_PRODUCER_ID if new_producer_id is None else new_producer_id,
            now_ms=now_ms,
        )
        markers = Markers.of(after)

        def on_committed(_: int) -> None:
            self.timed_out_count += 1
            self._send(markers)

        return Result(records=[self._record(after)], is_size_limited=False, on_committed=on_committed)

    def _partition_weight(self, transactional_id: str) -> int:
        known = self._transactions.get(transactional_id)
        return 0 if known is None else len(known.partitions) // PARTITIONS_PER_WEIGHT

    def _expire(self, transactional_id: str, now_ms: int) -> Result[TransactionRecord, None] | None:
        known = self._transactions.get(transactional_id)
        if known is None or not known.status.is_idle:
            return None
        if known.update_timestamp_ms + self._options.id_expiration_ms() > now_ms:
            return None
        return Result(records=[TransactionRecord(transactional_id, None)], is_atomic=False)

    # Listing and describing

    def list_transactions(
        self, filters: listing.Filters, now_ms: int, at: int
    ) -> list[transactions_messages.ListedTransaction]:
        return listing.list_all(self._transactions.copy_at(at).values(), filters, now_ms)

    def describe_transaction(self, transactional_id: str, at: int) -> transactions_messages.TransactionDescription:
        return listing.describe(transactional_id, self._transactions.get_at(transactional_id, at))

    def transactions(self) -> list[Transaction]:
        return list(self._transactions.values())

    def counts(self) -> dict[TransactionState, int]:
        counts = dict.fromkeys(TransactionState, 0)
        for each in self._transactions.values():
            counts[each.status] += 1
        return counts


def _writable(known: Transaction | None, producer_id: int, producer_epoch: int) -> Transaction:
    """Return the transaction if the producer may add to it; raises ApiError."""
    if known is None or known.client.producer_id != producer_id:
        raise InvalidProducerIdMapping
    if known.client.producer_epoch != producer_epoch or known.client.is_for_markers_only:
        raise ProducerFenced
    if known.status.is_prepared:
        raise ConcurrentTransactions
    if known.is_kept:
        raise InvalidTxnState("the transaction is kept only to be ended: partitions cannot be added to it")
    return known
