"""The shard of one ``__transaction_state`` partition: the transactional ids that hash to it.

Each public method is one operation for `millbeck.coordinator.runtime.host.ShardHost`. Theory of operation: an operation
makes a record of the id's next state, and replaying the record is what changes it. The decision to commit or abort is
such a record; its markers are sent once it is committed (`Result.on_committed`, or after a reload, when all that was
loaded is), and the record that completes the transaction is written when every partition has its marker. Nobody waits
in memory for anything: what a crash interrupts is taken up from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.timer import Timers
from millbeck.coordinator.transaction import listing, records
from millbeck.coordinator.transaction.ending import Ending, end
from millbeck.coordinator.transaction.initialising import Initialisation, begin, initialise
from millbeck.coordinator.transaction.markers import Markers, MarkerSender
from millbeck.coordinator.transaction.records import TransactionRecord
from millbeck.coordinator.transaction.status import Status, may_follow
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
from millbeck.wire.messages import describe_transactions, list_transactions

TIMEOUTS_KEY = ("abort-timed-out",)
EXPIRY_KEY = ("expire-ids",)
ABORTS_PER_STEP = 200
EXPIRIES_PER_STEP = 1000
STEP_PAUSE_MS = 1


class ProducerAnswer(NamedTuple):
    """The id and epoch that a producer goes on with."""

    producer_id: int
    producer_epoch: int
    error_code: int = NONE
    ongoing_producer_id: int = NO_PRODUCER_ID
    ongoing_producer_epoch: int = NO_EPOCH
    """Of the transaction that was kept for it."""


TransactionResult = Result[TransactionRecord, ProducerAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionShardOptions:
    abort_check_interval_ms: Callable[[], int] = field(default=lambda: 10_000)
    id_expiration_ms: Callable[[], int] = field(default=lambda: 7 * 86_400_000)
    expiration_check_interval_ms: Callable[[], int] = field(default=lambda: 3_600_000)
    transaction_version: Callable[[], int] = field(default=lambda: 2)
    """The cluster's level: what is written, and how transactions are aborted over their producer's head."""


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
        """No transaction writes to this topic."""

    def on_loaded(self, now_ms: int) -> None:
        for transaction in list(self._transactions.values()):
            if transaction.status.is_prepared:
                self._sender.send(Markers.of(transaction))
        self._schedule_timeouts(self._options.abort_check_interval_ms())
        self._schedule_expiry(self._options.expiration_check_interval_ms())

    def on_unloaded(self, error: ApiError) -> None:
        """Nobody is held here: whoever waits for markers is told by the sender."""

    # Operations of producers

    def init_producer_id(self, asked: Initialisation, now_ms: int) -> TransactionResult:
        known = self._transactions.get(asked.transactional_id)
        if known is None:
            known = begin(asked, now_ms)
        after = initialise(known, asked, fence_version=self._fence_version(), now_ms=now_ms)
        if after.status is Status.PREPARE_ABORT:
            # The producer comes back when the transaction in its way is gone.
            return self._decided(after, ConcurrentTransactions.code)
        answer = ProducerAnswer(*after.client)
        if after.is_kept:
            answer = answer._replace(ongoing_producer_id=after.producer_id, ongoing_producer_epoch=after.producer_epoch)
        return Result(records=[self._record(after)], response=answer)

    def _fence_version(self) -> int:
        """What an abort over a producer's head is made under: later levels end transactions as version 2 does."""
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
        """The answer is an error code, 0 for none."""
        known = self._writable(transactional_id, producer_id, producer_epoch)
        if known.status is Status.ONGOING and all(each in known.partitions for each in partitions):
            return Result(response=NONE)
        after = known.with_partitions(partitions, client_version=client_version, now_ms=now_ms)
        return Result(records=[self._record(after)], response=NONE)

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Iterable[TopicPartition]
    ) -> Result[TransactionRecord, Mapping[TopicPartition, int]]:
        """Whether partitions are part of the open transaction, as error codes."""
        known = self._writable(transactional_id, producer_id, producer_epoch)
        return Result(
            response={each: NONE if each in known.partitions else TransactionAbortable.code for each in partitions}
        )

    def _writable(self, transactional_id: str, producer_id: int, producer_epoch: int) -> Transaction:
        """What the producer may add to; raises ApiError."""
        known = self._transactions.get(transactional_id)
        if known is None or known.client.producer_id != producer_id:
            raise InvalidProducerIdMapping
        if known.client.producer_epoch != producer_epoch:
            raise ProducerFenced
        if known.status.is_prepared:
            raise ConcurrentTransactions
        if known.is_kept:
            raise InvalidTxnState("the transaction was kept to be ended: nothing can be added to it")
        return known

    def end(self, asked: Ending, now_ms: int) -> TransactionResult:
        known = self._transactions.get(asked.transactional_id)
        if known is None:
            raise InvalidProducerIdMapping
        after = end(known, asked, now_ms)
        if after is None:
            return Result(response=ProducerAnswer(known.producer_id, known.producer_epoch))
        return self._decided(after)

    # Markers

    def _decided(self, after: Transaction, error_code: int = NONE) -> TransactionResult:
        """Once the decision is committed, its markers are sent and the producer is answered."""
        markers = Markers.of(after)
        producer = ProducerAnswer(*after.client, error_code)
        if after.next_producer_id != NO_PRODUCER_ID and not after.is_kept:
            producer = ProducerAnswer(after.next_producer_id, 0, error_code)
        return Result(
            records=[self._record(after)], response=producer, on_committed=lambda _: self._sender.send(markers)
        )

    def complete(self, markers: Markers, now_ms: int) -> Result[TransactionRecord, bool]:
        """Every partition has its marker. False when the transaction is not the one the markers were for."""
        known = self._transactions.get(markers.transactional_id)
        if known is None or not known.status.is_prepared or Markers.of(known) != markers:
            return Result(response=False)
        return Result(records=[self._record(known.completed(now_ms))], response=True)

    def _record(self, after: Transaction) -> TransactionRecord:
        before = self._transactions.get(after.transactional_id)
        assert before is None or may_follow(before.status, after.status), (before, after)
        version = 1 if self._options.transaction_version() >= 1 else 0
        return TransactionRecord(after.transactional_id, after, version)

    # Transactions that take too long, and ids that nobody uses

    def _schedule_timeouts(self, delay_ms: int) -> None:
        self._timers.schedule(TIMEOUTS_KEY, delay_ms, self._abort_timed_out)

    def _abort_timed_out(self, now_ms: int) -> Result[TransactionRecord, None]:
        """Abort a few, all or none of them, and come back for the others after a pause."""
        late = [each for each in self._transactions.values() if each.is_timed_out(now_ms)]
        has_more = len(late) > ABORTS_PER_STEP
        self._schedule_timeouts(STEP_PAUSE_MS if has_more else self._options.abort_check_interval_ms())
        version = self._fence_version()
        aborted = [each.fenced(client_version=version, now_ms=now_ms) for each in late[:ABORTS_PER_STEP]]

        def on_committed(_: int) -> None:
            self.timed_out_count += len(aborted)
            for each in aborted:
                self._sender.send(Markers.of(each))

        return Result(records=[self._record(each) for each in aborted], on_committed=on_committed)

    def _schedule_expiry(self, delay_ms: int) -> None:
        self._timers.schedule(EXPIRY_KEY, delay_ms, self._expire)

    def _expire(self, now_ms: int) -> Result[TransactionRecord, None]:
        expiration_ms = self._options.id_expiration_ms()
        expired = [
            each.transactional_id
            for each in self._transactions.values()
            if each.status.is_idle and each.update_timestamp_ms + expiration_ms <= now_ms
        ]
        has_more = len(expired) > EXPIRIES_PER_STEP
        self._schedule_expiry(STEP_PAUSE_MS if has_more else self._options.expiration_check_interval_ms())
        tombstones = [TransactionRecord(each, None) for each in expired[:EXPIRIES_PER_STEP]]
        return Result(records=tombstones, is_atomic=False)

    # Transactions seen from outside

    def list_transactions(
        self, filters: listing.Filters, now_ms: int, at: int
    ) -> list[list_transactions.TransactionState]:
        return listing.list_all(self._transactions.copy_at(at).values(), filters, now_ms)

    def describe_transaction(self, transactional_id: str, at: int) -> describe_transactions.TransactionState:
        return listing.describe(transactional_id, self._transactions.get_at(transactional_id, at))

    def transactions(self) -> list[Transaction]:
        return list(self._transactions.values())

    def counts(self) -> dict[Status, int]:
        counts = dict.fromkeys(Status, 0)
        for each in self._transactions.values():
            counts[each.status] += 1
        return counts
