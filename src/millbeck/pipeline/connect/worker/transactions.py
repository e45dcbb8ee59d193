"""The transaction of one task number of a connector: begun by the worker, written to by a task, ended by the worker.

`open` takes the transactional id over, which aborts what an earlier worker left open and fences its tasks. From then
on every end gives the next epoch (KIP-890): what a task that was given up sends late is refused, and can never be part
of a later transaction. When an end fails, nobody knows whether it was done: `open` again, and read the positions anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from millbeck.client.cluster import Cluster
from millbeck.client.committed_offset import CommittedOffset, Committer
from millbeck.client.config import Value
from millbeck.client.errors import UnsupportedByBroker
from millbeck.client.producer.bulk import BatchProducer
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.partition_queue import ProducerIdState
from millbeck.client.producer.shared_transaction import TransactionHandle
from millbeck.client.producer.transactions import Transactions
from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.state.offsets import OffsetRecord
from millbeck.records.native.write import PayloadWriter
from millbeck.records.partitioning import partition_for_key

_SOMEWHERE: Final = TopicPartition("", 0)
TRANSACTION_TIMEOUT_MS: Final = 10 * 60_000


def transactional_id(group_id: str, connector: str, task: int) -> str:
    """The id as in Kafka Connect."""
    return f"{group_id}-{connector}-{task}"


class TaskTransaction:
    """Use it inside the event loop of ``cluster``, which it shares with others."""

    def __init__(
        self, environment: Environment, cluster: Cluster, settings: Mapping[str, Value], transactional_id: str
    ) -> None:
        given = {
            "transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
            **settings,
            "transactional.id": transactional_id,
        }
        self._environment = environment
        self._cluster = cluster
        self._config = ProducerConfig.parse(given)
        self._timeout_s = self._config.max_block_ms / 1000
        self._transactions: Transactions | None = None
        self._identities = ProducerIdState()

    async def open(self) -> None:
        """Take the transactional id over. Raises `ConfigError` if the cluster's transactions are too old."""
        self._identities = ProducerIdState()
        self._transactions = None
        transactions = Transactions(self._cluster, self._identities, self._config, _no_wakeup)
        try:
            await transactions.init(self._timeout_s)
        except UnsupportedByBroker as error:
            raise _too_old() from error
        if not transactions.is_version_2:
            raise _too_old()
        self._transactions = transactions

    @property
    def is_open(self) -> bool:
        return self._transactions is not None

    def begin(self) -> TransactionHandle:
        assert self._transactions is not None
        self._transactions.begin()
        current = self._identities.current
        assert current is not None
        return TransactionHandle(self._transactions.transactional_id, current.producer_id, current.epoch)

    async def commit(
        self,
        *,
        offsets_topic: str = "",
        source_offsets: Sequence[OffsetRecord] = (),
        group: str = "",
        positions: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Commit what a task has written, together with a source's offsets or a sink's positions."""
        transactions = self._transactions
        assert transactions is not None
        try:
            if source_offsets:
                current = self._identities.current
                assert current is not None
                ticket = TransactionHandle(transactions.transactional_id, current.producer_id, current.epoch)
                await write_offsets(
                    self._environment, self._cluster, self._config, offsets_topic, source_offsets, ticket
                )
            if positions:
                committed = {partition: CommittedOffset(offset, -1, "") for partition, offset in positions.items()}
                await transactions.add_offsets(group, Committer(), committed, self._timeout_s)
            # Other processes have written; this one does not know to which partitions.
            transactions.may_send(_SOMEWHERE)
            await transactions.end(is_committed=True, timeout_s=self._timeout_s)
        except BaseException:
            self._transactions = None
            raise

    async def abort(self) -> None:
        """Abort whatever a task has written, or still writes."""
        transactions, self._transactions = self._transactions, None
        if transactions is None:
            return
        transactions.may_send(_SOMEWHERE)
        await transactions.end(is_committed=False, timeout_s=self._timeout_s)
        self._transactions = transactions


async def write_offsets(
    environment: Environment,
    cluster: Cluster,
    config: ProducerConfig,
    topic: str,
    records: Sequence[OffsetRecord],
    ticket: TransactionHandle | None,
) -> None:
    """Write records of the offsets topic, and wait until they are stored."""
    producer = BatchProducer(environment, config, ticket=ticket, cluster=cluster)
    count = (await producer.topic(topic)).partition_count
    now_ms = environment.clock.wall_ms()
    writers: dict[int, PayloadWriter] = {}
    for key, value in records:
        writers.setdefault(partition_for_key(key, count), PayloadWriter()).append(now_ms, key, value)
    for number, writer in writers.items():
        stamps = (now_ms, now_ms)
        await producer.put(TopicPartition(topic, number), writer.payload(), writer.record_count, stamps)
    await producer.finish()


def _too_old() -> ConfigError:
    return ConfigError(
        "exactly.once.source.support=enabled and dead letters need transaction.version 2 of the brokers: raise it"
        " (kafka-features or millbeck feature upgrade), or set exactly.once.source.support=disabled"
    )


def _no_wakeup() -> None:
    """Do nothing: there is no sender to wake."""
