"""The transaction state machine of a producer: requests to the coordinator, and when batches may be sent.

States
        NEW     -> READY    `init` has a producer id and epoch; older producers with the transactional id are fenced
    READY   -> OPEN     `begin`
    OPEN    -> FAILED   a record was not stored: the transaction can only be aborted
        OPEN    -> READY    `end` was answered: committed or aborted
    FAILED  -> READY    `end` with an abort
        OPEN    -> PREPARED `prepare`: everything is stored, and only the decision is missing (two-phase commit)
        NEW     -> PREPARED `init` has kept the transaction that the previous producer prepared
        PREPARED -> READY   `end`, as decided
        any     -> DEAD     fenced, or refused by the broker: nothing can be sent any more

From transaction version 2 on (as reported by the broker) a partition joins the transaction with its first batch, and
the EndTxn response has the next epoch. Before that, partitions are added with AddPartitionsToTxn first, and an abort
that leaves batches with unknown outcome requests a new epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple, Protocol, Self, TypeVar

from millbeck.client.cluster import Cluster
from millbeck.client.committed_offset import CommittedOffset, Committer
from millbeck.client.producer.batch import ProducerIdentity
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.partition_queue import ProducerIdState
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    ApiError,
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
    from_code,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

TRANSACTION_KEY: Final = 1
PURPOSE: Final = "transactions"
FEATURE: Final = "transaction.version"
PRODUCE_MAX_BEFORE_2: Final = 11
CLIENTS_ADD_UP_TO: Final = 3
END_MAX_BEFORE_2: Final = 4
OFFSETS_MAX_BEFORE_2: Final = 4
INIT_STABLE_MAX: Final = 5
INIT_TWO_PHASE: Final = 6
PAUSE_S: Final = 0.02
"""Retry interval while the previous transaction completes (CONCURRENT_TRANSACTIONS), which takes milliseconds."""

_FATAL: Final = (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
)


class Stage(Enum):
    NEW = "new"
    READY = "ready"
    OPEN = "open"
    PREPARED = "prepared"
    FAILED = "failed"
    DEAD = "dead"


class PreparedState(NamedTuple):
    """Identifies a prepared transaction; the external transaction manager stores it, as text, with its decision."""

    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text of `str`; raises ValueError for anything else."""
        producer_id, separator, epoch = text.partition(":")
        if not separator:
            raise ValueError(f"{text!r} is not a prepared transaction's state, which is producer id:epoch")
        return cls(int(producer_id), int(epoch))


class _Answer(Protocol):
    error_code: int


A = TypeVar("A", bound=_Answer)


class Transactions:
    def __init__(
        self, cluster: Cluster, identities: ProducerIdState, config: ProducerConfig, wake: Callable[[], None]
    ) -> None:
        """``wake`` is called when more partitions may be sent to."""
        assert config.transactional_id is not None
        identities.is_fixed = True
        self._cluster = cluster
        self._identities = identities
        self._config = config
        self._wake = wake
        self.transactional_id = config.transactional_id
        self.stage = Stage.NEW
        self.error: ApiError | None = None
        self.is_version_2 = False
        self._added: dict[TopicPartition, None] = {}
        self._wanted: dict[TopicPartition, None] = {}
        self._adding: asyncio.Task[None] | None = None
        self._has_begun = False
        """Whether a broker may have records of the open transaction."""
        self._has_gap = False
        self.prepared: PreparedState | None = None
        """The prepared transaction that waits for its decision."""

    # called by the producer

    async def init(self, timeout_s: float, *, keeps_prepared: bool = False) -> None:
        """Take over the transactional id; its open transaction is aborted, or kept to be completed."""
        if self.stage is not Stage.NEW:
            raise InvalidTxnState(f"the producer is {self.stage.value}")
        self.prepared = await self._take(timeout_s, keeps_prepared=keeps_prepared)
        self._has_begun = self.prepared is not None
        self.stage = Stage.READY if self.prepared is None else Stage.PREPARED

    def prepare(self) -> PreparedState:
        """Prepare; all records must be stored. From now on the transaction can only be committed or aborted."""
        if not self._config.two_phase_commit:
            raise InvalidTxnState("cannot prepare a transaction: transaction.two.phase.commit.enable is off")
        if self.stage is not Stage.OPEN:
            raise self._refusal("prepare")
        assert self._identities.current is not None
        self.prepared = PreparedState(*self._identities.current[:2])
        self.stage = Stage.PREPARED
        return self.prepared

    def begin(self) -> None:
        if self.stage is not Stage.READY:
            raise self._refusal("begin a transaction")
        self.stage = Stage.OPEN
        self._has_begun = self._has_gap = False

    async def add_offsets(
        self,
        group_id: str,
        committer: Committer,
        offsets: Mapping[TopicPartition, CommittedOffset],
        timeout_s: float,
    ) -> None:
        """Commit a group's offsets as part of the transaction."""
        if self.stage is not Stage.OPEN:
            raise self._refusal("commit offsets")
        self._has_begun = True
        try:
            if not self.is_version_2:
                await self._ask(
                    lambda who: AddOffsetsToTxnRequest(self.transactional_id, *who[:2], group_id),
                    AddOffsetsToTxnResponse,
                    timeout_s,
                )
            await self._commit_offsets(group_id, committer, offsets, timeout_s)
        except ApiError as error:
            self.failed(error)
            raise

    async def end(self, *, is_committed: bool, timeout_s: float) -> None:
        """Commit or abort; all records must be stored or dropped before."""
        if is_committed and self.stage not in (Stage.OPEN, Stage.PREPARED):
            raise self._refusal("commit")
        if self.stage not in (Stage.OPEN, Stage.PREPARED, Stage.FAILED):
            raise self._refusal("abort")
        if self._has_begun:
            try:
                answer = await self._ask(
                    lambda who: EndTxnRequest(self.transactional_id, *who[:2], is_committed),
                    EndTxnResponse,
                    timeout_s,
                    version_max=None if self.is_version_2 else END_MAX_BEFORE_2,
                )
            except ApiError as error:
                self.failed(error)
                raise
            if self.is_version_2:
                self._adopt(answer.producer_id, answer.producer_epoch)
            elif self._has_gap:
                await self._take(timeout_s)
        self._added.clear()
        self.stage, self.error, self.prepared = Stage.READY, None, None

    # called by the sender

    def check_open(self) -> None:
        """Raise unless a transaction is open; called before a record is accepted."""
        if self.stage is not Stage.OPEN:
            raise self._refusal("send")

    def may_send(self, partition: TopicPartition) -> bool:
        """Whether batches of the partition may be sent; if not, the partition is being added to the transaction."""
        if self.stage is not Stage.OPEN:
            return False
        if self.is_version_2 or partition in self._added:
            self._has_begun = True
            return True
        self._wanted[partition] = None
        if self._adding is None:
            self._adding = self._cluster.spawn(self._add_wanted())
        return False

    @property
    def identity(self) -> ProducerIdentity | None:
        """The producer id and epoch that the coordinator assigned."""
        return self._identities.current

    @property
    def produce_version_max(self) -> int | None:
        return None if self.is_version_2 else PRODUCE_MAX_BEFORE_2

    def failed(self, error: ApiError) -> None:
        """A record of the open transaction is lost: it can only be aborted."""
        if isinstance(error, _FATAL):
            self.stage = Stage.DEAD
            self.error = error.with_traceback(None)
        elif self.stage is Stage.OPEN:
            self.stage = Stage.FAILED
            self._has_gap = True
            self.error = error.with_traceback(None)

    def _refusal(self, what: str) -> ApiError:
        if self.error is not None and self.stage is Stage.DEAD:
            return self.error
        reason = "" if self.error is None else f": {self.error}"
        if self.stage in (Stage.NEW, Stage.READY) and self.error is None:
            missing = (
                "init_transactions() and begin_transaction()" if self.stage is Stage.NEW else "begin_transaction()"
            )
            reason = f": call {missing} first, or use `async with producer.transaction()`"
        return InvalidTxnState(f"cannot {what}: the producer's transaction is {self.stage.value}{reason}")

    # requests to the coordinator

    async def _take(self, timeout_s: float, *, keeps_prepared: bool = False) -> PreparedState | None:
        """Send InitProducerId; returns the kept transaction, if there is one."""
        known = self._identities.current
        is_two_phase = self._config.two_phase_commit or keeps_prepared
        answer = await self._ask(
            lambda who: InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self._config.transaction_timeout_ms,
                producer_id=-1 if known is None else known.producer_id,
                producer_epoch=-1 if known is None else known.epoch,
                enable2_pc=self._config.two_phase_commit,
                keep_prepared_txn=keeps_prepared,
            ),
            InitProducerIdResponse,
            timeout_s,
            version_max=INIT_TWO_PHASE if is_two_phase else INIT_STABLE_MAX,
            version_min=INIT_TWO_PHASE if is_two_phase else None,
        )
        connection = await self._cluster.any_connection(Deadline(timeout_s))
        levels = (0, 0) if connection.versions is None else connection.versions.finalized_features.get(FEATURE, (0, 0))
        self.is_version_2 = levels[1] >= 2
        self._adopt(answer.producer_id, answer.producer_epoch)
        if answer.ongoing_txn_producer_id < 0:
            return None
        return PreparedState(answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch)

    def _adopt(self, producer_id: int, epoch: int) -> None:
        self._identities.current = ProducerIdentity(producer_id, epoch, True)
        self._wake()

    async def _ask(
        self,
        request: Callable[[ProducerIdentity], object],
        response: type[A],
        timeout_s: float,
        version_max: int | None = None,
        version_min: int | None = None,
    ) -> A:
        """Send a request to the coordinator, with retries of retriable errors."""

        async def attempt(deadline: Deadline) -> A:
            message = request(self._identities.current or ProducerIdentity(-1, -1))
            while True:
                try:
                    node_id = await self._cluster.coordinator(
                        self.transactional_id, deadline=deadline, key_type=TRANSACTION_KEY
                    )
                    answer = await self._cluster.request(
                        message,
                        response,
                        deadline=deadline,
                        node_id=node_id,
                        purpose=PURPOSE,
                        version_max=version_max,
                        version_min=version_min,
                    )
                    if answer.error_code == ConcurrentTransactions.code and not deadline.has_passed:
                        await asyncio.sleep(PAUSE_S)
                        continue
                    if answer.error_code:
                        raise from_code(answer.error_code)
                    return answer
                except ApiError as error:
                    if error.retriable:
                        self._cluster.forget_coordinator(self.transactional_id, key_type=TRANSACTION_KEY)
                    raise

        return await self._cluster.retrying(attempt, timeout_s=timeout_s)

    async def _add_wanted(self) -> None:
        try:
            while self._wanted and self.stage is Stage.OPEN:
                wanted, self._wanted = self._wanted, {}
                self._has_begun = True
                await self._add(list(wanted))
                self._added.update(wanted)
        except ApiError as error:
            self.failed(error)
        finally:
            self._adding = None
            self._wake()

    async def _add(self, partitions: list[TopicPartition]) -> None:
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        asked = [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()]

        def request(who: ProducerIdentity) -> AddPartitionsToTxnRequest:
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=who.producer_id,
                v3_and_below_producer_epoch=who.epoch,
                v3_and_below_topics=asked,
            )

        async def attempt(deadline: Deadline) -> None:
            node_id = await self._cluster.coordinator(
                self.transactional_id, deadline=deadline, key_type=TRANSACTION_KEY
            )
            assert self._identities.current is not None
            answer = await self._cluster.request(
                request(self._identities.current),
                AddPartitionsToTxnResponse,
                deadline=deadline,
                node_id=node_id,
                purpose=PURPOSE,
                version_max=CLIENTS_ADD_UP_TO,
            )
            codes = [
                each.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for each in topic.results_by_partition
                if each.partition_error_code
            ]
            if codes:
                error = from_code(codes[0])
                if error.retriable and not isinstance(error, ConcurrentTransactions):
                    self._cluster.forget_coordinator(self.transactional_id, key_type=TRANSACTION_KEY)
                raise error

        await self._cluster.retrying(attempt, timeout_s=self._config.max_block_ms / 1000)

    async def _commit_offsets(
        self,
        group_id: str,
        committer: Committer,
        offsets: Mapping[TopicPartition, CommittedOffset],
        timeout_s: float,
    ) -> None:
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (topic, index), committed in offsets.items():
            entry = topics.setdefault(topic, TxnOffsetCommitRequestTopic(topic))
            entry.partitions.append(
                TxnOffsetCommitRequestPartition(index, committed.offset, committed.leader_epoch, committed.metadata)
            )
        assert self._identities.current is not None
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self._identities.current.producer_id,
            producer_epoch=self._identities.current.epoch,
            generation_id=committer.generation,
            member_id=committer.member_id,
            group_instance_id=committer.instance_id,
            topics=list(topics.values()),
        )

        async def attempt(deadline: Deadline) -> None:
            try:
                node_id = await self._cluster.coordinator(group_id, deadline=deadline)
                answer = await self._cluster.request(
                    request,
                    TxnOffsetCommitResponse,
                    deadline=deadline,
                    node_id=node_id,
                    purpose=PURPOSE,
                    version_max=None if self.is_version_2 else OFFSETS_MAX_BEFORE_2,
                )
                codes = [each.error_code for topic in answer.topics for each in topic.partitions if each.error_code]
                if codes:
                    raise from_code(codes[0])
            except ApiError as error:
                if error.retriable:
                    self._cluster.forget_coordinator(group_id)
                raise

        await self._cluster.retrying(attempt, timeout_s=timeout_s)
