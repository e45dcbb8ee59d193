"""Transactions in a cluster that is broken again and again; and what each rule is for, shown without it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.client.consumer.fetched import CompletedFetch
from millbeck.coordinator.group.offsets.store import OffsetStore
from millbeck.coordinator.transaction.initialization import Initialisation
from millbeck.coordinator.transaction.markers import Markers
from millbeck.coordinator.transaction.shard import TransactionShard
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.replication.partition import Partition
from millbeck.server.transactions.marker_sender import MarkerSender
from millbeck.server.transactions.write_verification import TransactionVerification
from millbeck.simulation.runs import transactions_run
from millbeck.simulation.runs.transactions_run import TransactionsPlan, TransactionsRun

SEEDS = (1, 4, 126)


@pytest.mark.parametrize("drawn", SEEDS)
def test_every_number_comes_out_once(drawn: int) -> None:
    run = TransactionsRun(TransactionsPlan.drawn(drawn))
    assert run.run() == []
    assert run.progress.committed_count > 5


def test_what_is_prepared_ends_as_was_decided_elsewhere() -> None:
    plan = TransactionsPlan(seed=5, number_count=24, worker_count=1, two_phase_count=2, fault_count=3, over_s=10.0)
    run = TransactionsRun(plan)
    assert run.run() == []
    assert run.progress.committed_count > 10
    assert run.progress.fenced_count > 0


def _premature(monkeypatch: pytest.MonkeyPatch) -> None:
    original = TransactionShard._decided

    def decided(self: TransactionShard, after: Transaction, *more: Any) -> Any:
        self._sender.send(Markers.of(after))
        return replace(original(self, after, *more), on_committed=None)

    monkeypatch.setattr(TransactionShard, "_decided", decided)


def _no_bump(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Transaction.prepared

    def prepared(self: Transaction, **details: Any) -> Transaction:
        return replace(original(self, **details), producer_epoch=self.producer_epoch)

    monkeypatch.setattr(Transaction, "prepared", prepared)


def _stable_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "fetch_upper_bound", lambda self, *, committed_only: self.high_watermark)


def _offsets_of_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    original = OffsetStore.end_transaction

    def end(self: OffsetStore, producer_id: int, *, is_committed: bool) -> None:
        original(self, producer_id, is_committed=True)

    monkeypatch.setattr(OffsetStore, "end_transaction", end)


def _unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransactionVerification, "start", lambda *_, **__: None)
    monkeypatch.setattr(TransactionVerification, "check", lambda *_: None)


def _early_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    def done(self: MarkerSender, run: Any, name: Any) -> None:
        run.left.clear()
        run.is_dropped = False
        self._finish(run)
        run.is_dropped = True

    monkeypatch.setattr(MarkerSender, "_done", done)


def _unfenced(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Transaction.with_next_epoch

    def bump(self: Transaction, **details: Any) -> Transaction:
        return replace(original(self, **details), producer_epoch=max(self.producer_epoch, 0))

    monkeypatch.setattr(Transaction, "with_next_epoch", bump)
    monkeypatch.setattr(
        Transaction, "fenced", lambda self, **_: replace(self.prepared(is_committed=False, client_version=0, now_ms=0))
    )


def _seen_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompletedFetch, "_is_hidden", lambda self, header, batch: header.is_control)


def _kept_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    original = TransactionShard.init_producer_id

    def init(self: TransactionShard, asked: Initialisation, now_ms: int) -> Any:
        return original(self, replace(asked, keeps_prepared=False), now_ms)

    monkeypatch.setattr(TransactionShard, "init_producer_id", init)


def _unfenced_from_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote what is kept may still end it, against the decision."""
    original = Transaction.kept

    def kept(self: Transaction, new_producer_id: int, **details: Any) -> Transaction:
        after = original(self, new_producer_id, **details)
        return replace(after, next_producer_id=self.producer_id, next_producer_epoch=self.producer_epoch)

    monkeypatch.setattr(Transaction, "kept", kept)


def _marked_as_its_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markers of what is kept go out under the pair of who ends it, which has written nothing."""
    original = Markers.of

    def of(transaction: Transaction) -> Markers:
        markers = original(transaction)
        if not transaction.is_kept:
            return markers
        return replace(markers, producer_id=transaction.client.producer_id + 1)

    monkeypatch.setattr(Markers, "of", staticmethod(of))


TWO_PHASE_MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a prepared transaction is aborted by its successor's arrival": _kept_is_aborted,
    "whoever prepared it is not fenced from what is kept": _unfenced_from_kept,
    "markers of what is kept are its successor's": _marked_as_its_successor,
}
MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "markers before the decision is committed": _premature,
    "no epoch bump at the end": _no_bump,
    "a last stable offset that ignores what is open": _stable_is_all,
    "offsets of aborted transactions": _offsets_of_aborts,
    "no verification": _unverified,
    "completed before all markers": _early_completion,
    "no fencing": _unfenced,
    "readers that see aborted records": _seen_aborts,
    **TWO_PHASE_MUTANTS,
}


def _plan_for(mutant: str, number: int) -> TransactionsPlan:
    plan = TransactionsPlan(seed=number, number_count=20, fault_count=0, over_s=1.0)
    return replace(plan, worker_count=1, two_phase_count=2) if mutant in TWO_PHASE_MUTANTS else plan


@pytest.mark.skipif("MILLBECK_MUTANTS" not in os.environ, reason="takes a minute: MILLBECK_MUTANTS=1")
@pytest.mark.parametrize("mutant", MUTANTS)
def test_without_the_rule_something_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)
    monkeypatch.setattr(transactions_run, "WORK_SECONDS", 60.0)
    monkeypatch.setattr(transactions_run, "SETTLE_SECONDS", 20.0)
    for number in range(6):
        run = TransactionsRun(_plan_for(mutant, number))
        try:
            if run.run():
                return
        except Exception:
            return
    pytest.fail(f"nobody notices {mutant}")
