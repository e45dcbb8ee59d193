"""What a pass knows of transactions."""

from __future__ import annotations

from millbeck.storage.compaction.transactions import CleanedTransactionMetadata
from millbeck.storage.txn_index import AbortedTransaction

FIRST = AbortedTransaction(1, 10, 19, 20)
SECOND = AbortedTransaction(1, 30, 39, 40)
OTHER = AbortedTransaction(2, 12, 25, 26)


def test_a_batch_is_aborted_between_first_offset_and_marker() -> None:
    transactions = CleanedTransactionMetadata([SECOND, FIRST, OTHER, FIRST])
    assert not transactions.is_aborted(1, 5)
    assert transactions.is_aborted(1, 10)
    assert transactions.is_aborted(2, 13)
    assert not transactions.is_aborted(1, 22)
    assert transactions.is_aborted(1, 35)
    assert not transactions.is_aborted(3, 36)


def test_a_pass_that_begins_late_is_not_misled_by_what_ended_before() -> None:
    assert not CleanedTransactionMetadata([FIRST]).is_aborted(1, 22)


def test_an_abort_marker_is_needed_when_batches_were_met() -> None:
    transactions = CleanedTransactionMetadata([FIRST, SECOND])
    transactions.is_aborted(1, 11)
    assert transactions.end_aborted(1, 19) == FIRST
    assert transactions.end_aborted(1, 39) is None


def test_a_commit_marker_is_needed_once_when_batches_were_met() -> None:
    transactions = CleanedTransactionMetadata([])
    transactions.is_aborted(1, 11)
    assert not transactions.end_committed(2)
    assert transactions.end_committed(1)
    assert not transactions.end_committed(1)
