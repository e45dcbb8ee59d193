"""The markers of a prepared transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.kernel.ids import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """The marker of one transaction and the partitions it is written to."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_committed: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int
    """From 2 on the marker's epoch is higher than that of all records of the transaction."""

    @classmethod
    def of(cls, transaction: Transaction) -> Markers:
        assert transaction.status.is_prepared, "markers require a prepared transaction"
        return cls(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            is_committed=transaction.status is TransactionState.PREPARE_COMMIT,
            partitions=tuple(transaction.partitions),
            transaction_version=transaction.client_version,
        )


class MarkerSender(Protocol):
    def send(self, markers: Markers) -> None:
        """Write all markers, retrying without limit, then call `TransactionShard.complete` with them.

        Called once the prepared state is committed, and possibly again after a reload.
        """
