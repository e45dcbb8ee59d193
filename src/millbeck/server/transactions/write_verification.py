"""Verify transactional writes with the transaction coordinator before the first append to a partition (KIP-890).

Without this, a delayed write could arrive after its transaction's marker and leave a hanging transaction.

Theory of operation. The first write of a producer's transaction to a partition gets a verification guard. While the
guard is pending, the broker asks the coordinator to verify that the partition is part of the transaction (up to
transaction version 1), or to add it (version 2). The write is appended only if its guard is still valid when the
response arrives; a marker of the transaction or a leader change invalidates it. While a transaction is open on the
partition, its producer's writes need no guard. A guard stays after a failed write, since it remembers the lowest
sequence seen: a later batch must not overtake it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.transaction.transaction import EPOCH_BUMP_VERSION
from millbeck.kernel.errors import (
    NONE,
    ApiError,
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    from_code,
)
from millbeck.kernel.histogram import Histogram
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.names import TRANSACTION_STATE_TOPIC
from millbeck.replication.partition import Partition
from millbeck.storage.producer_state import NO_OFFSET
from millbeck.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from millbeck.coordinator.runtime.result import Result
    from millbeck.coordinator.runtime.shard_runner import TransactionEnd
    from millbeck.coordinator.transaction.records import TransactionRecord
    from millbeck.coordinator.transaction.shard import TransactionShard
    from millbeck.server.transactions.context import TransactionContext

GUARDS_MAX: Final = 10_000
"""The maximum number of guards per partition; the oldest are evicted, and their writes are rejected."""
PURPOSE: Final = "add-partitions-to-txn"

Outcomes = Mapping[TopicPartition, ApiError | None]
PartitionKey = tuple[bytes, int]


class _Entry:
    """The verification state of a producer on a partition, until a write is appended or a marker arrives."""

    __slots__ = ("adds", "leader_epoch", "lowest_sequence", "producer_epoch")

    def __init__(self, producer_epoch: int, leader_epoch: int, lowest_sequence: int) -> None:
        self.adds = True
        """Whether all guarded writes use transaction version 2, which adds the partition."""
        self.producer_epoch = producer_epoch
        self.leader_epoch = leader_epoch
        self.lowest_sequence = lowest_sequence


class VerificationGuard:
    """The guard of one write under verification; valid while ``entry`` is the producer's current entry."""

    __slots__ = ("adds", "base_sequence", "entry", "partition", "producer_epoch", "producer_id")

    def __init__(
        self, partition: Partition, producer_id: int, producer_epoch: int, base_sequence: int, *, adds: bool
    ) -> None:
        self.partition = partition
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.adds = adds
        self.entry: _Entry | None = None


class TransactionVerification:
    def __init__(self, broker: TransactionContext) -> None:
        self._broker = broker
        self._entries: dict[PartitionKey, dict[int, _Entry]] = {}
        self.failure_count = 0
        self.times_ms = Histogram()
        """The verification time, including retries."""

    # Guards

    def start(
        self, partition: Partition, producer_id: int, producer_epoch: int, base_sequence: int, *, adds: bool
    ) -> VerificationGuard | None:
        """Create a guard for a write that the coordinator must verify; None when the write needs no verification.

        ``adds``: the partition is added to the transaction (version 2), not only verified."""
        if is_open(partition, producer_id, producer_epoch):
            return None
        if not adds and not self._broker.config.transactions.verifies_partitions:
            return None
        guard = VerificationGuard(partition, producer_id, producer_epoch, base_sequence, adds=adds)
        self._renew(guard)
        return guard

    def _renew(self, guard: VerificationGuard) -> None:
        """Create or renew the guard's entry: a marker of the previous transaction may have removed it."""
        partition, producer_id = guard.partition, guard.producer_id
        entries = self._entries.setdefault(_partition_key(partition), {})
        known = entries.get(producer_id)
        if (
            known is None
            or known.producer_epoch != guard.producer_epoch
            or known.leader_epoch != partition.leader_epoch
        ):
            known = entries[producer_id] = _Entry(guard.producer_epoch, partition.leader_epoch, guard.base_sequence)
            if len(entries) > GUARDS_MAX:
                del entries[next(iter(entries))]
        known.lowest_sequence = min(known.lowest_sequence, guard.base_sequence)
        known.adds = known.adds and guard.adds
        guard.entry = known

    def check(
        self,
        partition: Partition,
        guard: VerificationGuard | None,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
    ) -> None:
        """Check the guard just before the append; raises when the transaction has ended or an earlier batch is missing.

        When this broker no longer leads the partition, nothing is checked: the append fails with
        NOT_LEADER_OR_FOLLOWER, so that the client finds the new leader. INVALID_TXN_STATE would make it abort the
        transaction and send the next one to this broker again."""
        if not partition.is_leader or is_open(partition, producer_id, producer_epoch):
            return
        if guard is None:
            if self._broker.config.transactions.verifies_partitions:
                raise InvalidTxnState("the record is not part of an ongoing transaction")
            return
        known = self._entries.get(_partition_key(partition), {}).get(producer_id)
        if known is None or known is not guard.entry or known.leader_epoch != partition.leader_epoch:
            raise InvalidTxnState("the transaction ended while the write was being verified")
        entry = partition.log.producers.latest(producer_id)
        if base_sequence >= 0 and (entry is None or not entry.batches):
            expected = 0 if guard.adds else known.lowest_sequence
            if base_sequence > expected:
                raise OutOfOrderSequenceNumber(
                    f"producer {producer_id} starts with sequence {base_sequence}, expected {expected}"
                )

    def drop(self, partition: Partition, producer_id: int) -> None:
        """Remove the guard after an append: from then on the log's producer state has the open transaction."""
        entries = self._entries.get(_partition_key(partition))
        if entries is not None:
            entries.pop(producer_id, None)
            if not entries:
                del self._entries[_partition_key(partition)]

    def end(self, partition: Partition, end: TransactionEnd) -> None:
        """Invalidate the guard of a write that is still being verified, because a marker is being written.

        In version 2 the marker carries the epoch of the producer's next transaction. The first write of that
        transaction may already be waiting for the coordinator, which adds the partition once the last marker is
        written, and that may be this one. Its guard stays valid."""
        known = self._entries.get(_partition_key(partition), {}).get(end.producer_id)
        is_next = known is not None and known.adds and known.producer_epoch == end.producer_epoch
        if not is_next or end.transaction_version < EPOCH_BUMP_VERSION:
            self.drop(partition, end.producer_id)

    def partition_lost(self, partition: Partition) -> None:
        """Drop the guards of a partition that this node no longer leads."""
        self._entries.pop(_partition_key(partition), None)

    # The coordinator

    async def ask(self, transactional_id: str, guards: Sequence[VerificationGuard]) -> Outcomes:
        """Ask the coordinator to verify or add the partitions of these guards, all of one producer.

        While the previous transaction is still completing, the request is retried for a short time, which saves the
        client a round trip."""
        config = self._broker.config.transactions
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        give_up_s = started_s + config.add_partitions_retry_backoff_ms_max / 1000
        first = guards[0]
        partitions = [guard.partition.name for guard in guards]
        while True:
            outcomes = await self._ask_once(
                transactional_id, first.producer_id, first.producer_epoch, partitions, adds=first.adds
            )
            is_early = first.adds and any(isinstance(each, ConcurrentTransactions) for each in outcomes.values())
            if not is_early or loop.time() >= give_up_s:
                break
            await asyncio.sleep(config.add_partitions_retry_backoff_ms / 1000)
            for guard in guards:
                self._renew(guard)
        self.failure_count += sum(each is not None for each in outcomes.values())
        self.times_ms.record((loop.time() - started_s) * 1000)
        return outcomes

    async def _ask_once(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Outcomes:
        broker = self._broker
        try:
            leader = self._coordinator_of(transactional_id)
            if leader == broker.node_id:
                codes = await self._ask_locally(transactional_id, producer_id, producer_epoch, partitions, adds=adds)
            else:
                request = _request(transactional_id, producer_id, producer_epoch, partitions, adds=adds)
                answer = await broker.peers.request(
                    leader,
                    PURPOSE,
                    request,
                    AddPartitionsToTxnResponse,
                    timeout_s=broker.config.replication.request_timeout_ms / 1000,
                )
                codes = _codes(answer)
        except ApiError as error:
            producer_error = _producer_error(error)
            return dict.fromkeys(partitions, producer_error)
        return {each: _error_of(codes.get(each, CoordinatorNotAvailable.code)) for each in partitions}

    def _coordinator_of(self, transactional_id: str) -> int:
        image = self._broker.image
        registration = image.topics.partition(
            TRANSACTION_STATE_TOPIC, self._broker.transactions.partition_for(transactional_id)
        )
        if registration is None or registration.leader < 0:
            raise CoordinatorNotAvailable
        return registration.leader

    async def _ask_locally(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Mapping[TopicPartition, int]:
        answer: asyncio.Future[Mapping[TopicPartition, int]] = asyncio.get_running_loop().create_future()
        now_ms = self._broker.now_ms()

        def add(shard: TransactionShard) -> Result[TransactionRecord, int]:
            return shard.add_partitions(
                transactional_id, producer_id, producer_epoch, partitions, client_version=2, now_ms=now_ms
            )

        def succeed(codes: Mapping[TopicPartition, int]) -> None:
            if not answer.done():
                answer.set_result(codes)

        def fail(error: ApiError) -> None:
            if not answer.done():
                answer.set_exception(error)

        if adds:
            self._broker.transactions.write(
                transactional_id, add, ResponseCallback(lambda code: succeed(dict.fromkeys(partitions, code)), fail)
            )
        else:
            self._broker.transactions.read(
                transactional_id,
                lambda shard, at: shard.verify_partitions(
                    transactional_id, producer_id, producer_epoch, partitions, at
                ),
                ResponseCallback(succeed, fail),
            )
        return await answer


def _partition_key(partition: Partition) -> PartitionKey:
    return partition.topic_id, partition.name.partition


def is_open(partition: Partition, producer_id: int, producer_epoch: int) -> bool:
    """Whether the producer has a transaction open on the partition, in this epoch."""
    entry = partition.log.producers.latest(producer_id)
    return entry is not None and entry.epoch == producer_epoch and entry.transaction_first_offset != NO_OFFSET


def _request(
    transactional_id: str, producer_id: int, producer_epoch: int, partitions: Sequence[TopicPartition], *, adds: bool
) -> AddPartitionsToTxnRequest:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id,
                producer_id,
                producer_epoch,
                not adds,
                [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()],
            )
        ]
    )


def _codes(answer: AddPartitionsToTxnResponse) -> Mapping[TopicPartition, int]:
    if answer.error_code:
        raise from_code(answer.error_code)
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_error_code
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for each in topic.results_by_partition
    }


def _error_of(code: int) -> ApiError | None:
    return None if code == NONE else _producer_error(from_code(code))


def _producer_error(error: ApiError) -> ApiError:
    """Map PRODUCER_FENCED to INVALID_PRODUCER_EPOCH, the error that producers expect from Produce."""
    return InvalidProducerEpoch(error.message) if isinstance(error, ProducerFenced) else error.with_traceback(None)
