"""The workload counts what it sees; what it must see is asked by the run."""

from __future__ import annotations

from millbeck.simulation.runs.transactions_run import TransactionsPlan, TransactionsRun
from millbeck.simulation.workloads.exactly_once import WorkerProgress


def test_zombies_are_left_alone_and_fenced() -> None:
    run = TransactionsRun(TransactionsPlan(seed=3, number_count=40, worker_count=1, fault_count=0))
    assert run.run() == []
    assert run.progress.zombies
    assert run.progress.aborted_count > 0


def test_a_producer_that_is_given_nothing_new_is_told_of() -> None:
    progress = WorkerProgress(given={"x": [(1, 0), (1, 2), (2, 0)], "y": [(3, 1), (3, 1)]})
    assert progress.unfenced() == ["y: (3, 1) after (3, 1)"]
