"""One transaction with several writing processes: one process begins and ends it, and others write to it.

    ticket = await SharedTransaction(environment, settings, "revenue").begin()      # on a driver
    BulkProducer(environment, settings, ticket=ticket)                              # in each task, any machine
    await SharedTransaction(environment, settings, "revenue", ticket).commit("revenue", {partition: note})

A ticket is a producer id and epoch. Any process that holds it may write, but each to its own partitions: sequences
start at 0 with every ticket, so a second writer to a partition would look like a duplicate. `begin` fences all older
tickets, and aborts or completes their transaction. Needs transaction version 2 (KIP-890), where a partition joins with
its first batch and a ticket is invalid once its transaction has ended: a late batch of an abandoned task can never
become part of a later transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from millbeck.client.cluster import Cluster
from millbeck.client.committed_offset import CommittedOffset, Committer
from millbeck.client.config import Value
from millbeck.client.errors import UnsupportedByBroker
from millbeck.client.offset_requests import fetch_committed
from millbeck.client.producer.batch import ProducerIdentity
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.partition_queue import ProducerIdState
from millbeck.client.producer.transactions import Stage, Transactions
from millbeck.client.retry import Deadline
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition

_SOMEWHERE: Final = TopicPartition("", 0)


class TransactionHandle(NamedTuple):
    """A ticket: the producer id and epoch that writers need, small enough to be sent to tasks."""

    transactional_id: str
    producer_id: int
    epoch: int


class SharedTransaction:
    """The transaction, for the process that begins and ends it. Create it inside a running event loop, and call
    `close`."""

    def __init__(
        self,
        environment: Environment,
        settings: Mapping[str, Value],
        transactional_id: str,
        ticket: TransactionHandle | None = None,
    ) -> None:
        config = ProducerConfig.parse({**settings, "transactional.id": transactional_id})
        self._timeout_s = config.max_block_ms / 1000
        self.cluster = Cluster(environment, config)
        self._identities = ProducerIdState()
        self._transactions = Transactions(self.cluster, self._identities, config, _no_wakeup)
        if ticket is not None:
            self._identities.current = ProducerIdentity(ticket.producer_id, ticket.epoch, True)
            self._transactions.is_version_2 = True
            self._transactions.stage = Stage.OPEN

    async def begin(self) -> TransactionHandle:
        """Take over the transactional id. Raises `UnsupportedByBroker` if transaction.version is below 2."""
        await self._transactions.init(self._timeout_s)
        if not self._transactions.is_version_2:
            raise UnsupportedByBroker(
                "the cluster's transaction.version is below 2: raise it (kafka-features or millbeck feature upgrade)"
            )
        self._transactions.begin()
        current = self._identities.current
        assert current is not None
        return TransactionHandle(self._transactions.transactional_id, current.producer_id, current.epoch)

    async def notes(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """The group's committed offsets, when none are pending: either all offsets of the last `commit`, or none of
        them."""

        async def attempt(deadline: Deadline) -> dict[TopicPartition, CommittedOffset]:
            try:
                node_id = await self.cluster.coordinator(group_id, deadline=deadline)
                found = await fetch_committed(
                    self.cluster, node_id, group_id, None, deadline=deadline, require_stable=True
                )
            except ApiError as error:
                if error.retriable:
                    self.cluster.forget_coordinator(group_id)
                raise
            return {
                partition: CommittedOffset(entry.committed_offset, entry.committed_leader_epoch, entry.metadata or "")
                for partition, entry in found.items()
                if entry.committed_offset >= 0
            }

        return await self.cluster.retrying(attempt, timeout_s=self._timeout_s)

    async def commit(self, group_id: str, notes: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit the transaction: its records become visible together with the offsets in ``notes``.

        Raises if that failed or the outcome is unknown; `begin` and `notes` show it afterwards.
        """
        if notes:
            await self._transactions.add_offsets(group_id, Committer(), notes, self._timeout_s)
        await self._end(is_committed=True)

    async def abort(self) -> None:
        await self._end(is_committed=False)

    async def _end(self, *, is_committed: bool) -> None:
        # Other processes have written; this one does not know to which partitions.
        self._transactions.may_send(_SOMEWHERE)
        await self._transactions.end(is_committed=is_committed, timeout_s=self._timeout_s)

    async def close(self) -> None:
        """Close the client; an open transaction stays open, since others may still write."""
        await self.cluster.close()


def _no_wakeup() -> None:
    """Do nothing: there is no sender to wake."""
