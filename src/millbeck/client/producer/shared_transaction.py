"""One transaction that several processes write into: begun in one place, ended in another.

    ticket = await SharedTransaction(environment, settings, "revenue").begin()      # on a driver
    BulkProducer(environment, settings, ticket=ticket)                              # in each task, any machine
    await SharedTransaction(environment, settings, "revenue", ticket).commit("revenue", {partition: note})

A ticket is a producer's id and epoch. Whoever holds it may write, each to partitions of its own: sequences begin at 0
with every ticket, and two writers to one partition would be taken for one that repeats itself. Beginning anew fences
every older ticket, and aborts or completes what was written with it. Needs transaction version 2 (KIP-890), where a
partition joins with its first batch and a ticket is void once its transaction has ended: what arrives late from a task
that was given up can never become part of a later transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from millbeck.client.cluster import Cluster
from millbeck.client.config import Value
from millbeck.client.consumer.commits import CommittedOffset, Committer
from millbeck.client.errors import UnsupportedByBroker
from millbeck.client.offset_requests import fetch_committed
from millbeck.client.producer.batch import ProducerIdentity
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.partition_queue import Identities
from millbeck.client.producer.transactions import Stage, Transactions
from millbeck.client.retry import Deadline
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition

_SOMEWHERE: Final = TopicPartition("", 0)


class Ticket(NamedTuple):
    """What it takes to write into the transaction; small enough to be sent around."""

    transactional_id: str
    producer_id: int
    epoch: int


class SharedTransaction:
    """Make it inside a running loop, and `close` it."""

    def __init__(
        self,
        environment: Environment,
        settings: Mapping[str, Value],
        transactional_id: str,
        ticket: Ticket | None = None,
    ) -> None:
        config = ProducerConfig.parse({**settings, "transactional.id": transactional_id})
        self._timeout_s = config.max_block_ms / 1000
        self.cluster = Cluster(environment, config)
        self._identities = Identities()
        self._transactions = Transactions(self.cluster, self._identities, config, _nobody_waits)
        if ticket is not None:
            self._identities.current = ProducerIdentity(ticket.producer_id, ticket.epoch, True)
            self._transactions.is_version_2 = True
            self._transactions.stage = Stage.OPEN

    async def begin(self) -> Ticket:
        """Take the transactional id over. Raises `UnsupportedByBroker` where the cluster's transactions are older."""
        await self._transactions.init(self._timeout_s)
        if not self._transactions.is_version_2:
            raise UnsupportedByBroker(
                "the cluster's transaction.version is below 2: raise it (kafka-features or millbeck feature upgrade)"
            )
        self._transactions.begin()
        current = self._identities.current
        assert current is not None
        return Ticket(self._transactions.transactional_id, current.producer_id, current.epoch)

    async def notes(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, with nothing pending: what `commit` wrote is all there, or not at all."""

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
        """Everything that was written becomes visible, together with the notes.

        Raises if that did not happen, or if nobody knows; `begin` and `notes` tell afterwards.
        """
        if notes:
            await self._transactions.add_offsets(group_id, Committer(), notes, self._timeout_s)
        await self._end(is_committed=True)

    async def abort(self) -> None:
        await self._end(is_committed=False)

    async def _end(self, *, is_committed: bool) -> None:
        # Others have written, whatever is known here.
        self._transactions.may_send(_SOMEWHERE)
        await self._transactions.end(is_committed=is_committed, timeout_s=self._timeout_s)

    async def close(self) -> None:
        """An open transaction stays open: others may still write."""
        await self.cluster.close()


def _nobody_waits() -> None:
    """There is no sender here to wake."""
