"""A plan says everything about a run; the runs themselves are in tests/sim."""

from __future__ import annotations

from millbeck.coordinator.transaction.shard import TransactionShard
from millbeck.server.transactions.marker_sender import MarkerSender
from millbeck.simulation.runs.transactions_run import TransactionsPlan, TransactionsRun


def test_a_seed_draws_the_same_plan_again() -> None:
    assert TransactionsPlan.drawn(3) == TransactionsPlan.drawn(3)
    assert len({TransactionsPlan.drawn(seed).fault_count for seed in range(20)}) > 1


def test_a_run_without_faults_finds_nothing_and_leaves_nothing_behind() -> None:
    before = (MarkerSender.send, TransactionShard.complete)
    run = TransactionsRun(TransactionsPlan(seed=2, number_count=12, worker_count=1, fault_count=0))
    assert run.run() == []
    assert run.progress.committed_count >= 3
    assert (MarkerSender.send, TransactionShard.complete) == before
