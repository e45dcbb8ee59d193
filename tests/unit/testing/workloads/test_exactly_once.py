"""The workload counts what it sees; what it must see is asked by the run."""

from __future__ import annotations

from millbeck.testing.transactions_run import TransactionsPlan, TransactionsRun


def test_zombies_are_left_alone_and_fenced() -> None:
    run = TransactionsRun(TransactionsPlan(seed=3, number_count=40, worker_count=1, fault_count=0))
    assert run.run() == []
    assert run.progress.zombies
    assert run.progress.aborted_count > 0
