"""What is to be written into the partitions of a decided transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from millbeck.coordinator.transaction.status import Status
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.kernel.ids import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """The end of one transaction, for each of its partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_committed: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int
    """From 2 on the epoch is above that of everything the transaction wrote."""

    @classmethod
    def of(cls, transaction: Transaction) -> Markers:
        assert transaction.status.is_prepared, "markers follow a decision"
        return cls(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            is_committed=transaction.status is Status.PREPARE_COMMIT,
            partitions=tuple(transaction.partitions),
            transaction_version=transaction.client_version,
        )


class MarkerSender(Protocol):
    def send(self, markers: Markers) -> None:
        """Write them all, however long that takes, and then have `TransactionShard.complete` called with them.

        The decision is committed when this is called; it may be called again after a reload."""
