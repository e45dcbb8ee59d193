"""ListTransactions and DescribeTransactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.kernel.errors import NONE, TransactionalIdNotFound
from millbeck.wire.messages import transactions as transactions_messages

NO_DURATION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters of ListTransactions; an empty one matches all."""

    statuses: frozenset[TransactionState] | None = None
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = NO_DURATION
    """Minimum duration of an open transaction."""
    matches: Callable[[str], bool] | None = None
    """Matches the transactional id against a pattern."""

    def let_pass(self, transaction: Transaction, now_ms: int) -> bool:
        if self.statuses is not None and transaction.status not in self.statuses:
            return False
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if self.duration_ms >= 0 and now_ms - transaction.start_timestamp_ms <= self.duration_ms:
            return False
        return self.matches is None or self.matches(transaction.transactional_id)


def list_all(
    transactions: Iterable[Transaction], filters: Filters, now_ms: int
) -> list[transactions_messages.ListedTransaction]:
    return [
        transactions_messages.ListedTransaction(each.transactional_id, each.producer_id, each.status.shown)
        for each in transactions
        if each.status is not TransactionState.DEAD and filters.let_pass(each, now_ms)
    ]


def describe(transactional_id: str, transaction: Transaction | None) -> transactions_messages.TransactionDescription:
    if transaction is None or transaction.status is TransactionState.DEAD:
        return transactions_messages.TransactionDescription(
            error_code=TransactionalIdNotFound.code, transactional_id=transactional_id
        )
    topics: dict[str, list[int]] = {}
    for topic, partition in transaction.partitions:
        topics.setdefault(topic, []).append(partition)
    return transactions_messages.TransactionDescription(
        error_code=NONE,
        transactional_id=transactional_id,
        transaction_state=transaction.status.shown,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_timestamp_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[transactions_messages.DescribeTransactionsTopicResult(name, ids) for name, ids in topics.items()],
    )
