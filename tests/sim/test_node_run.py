"""One node under crashes, power cuts, full and slow disks and lost connections.

Nothing acknowledged is lost, nothing is there twice, nothing changes its place. And the harness is not blind: each
mutant of the node is caught.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from millbeck import compiled
from millbeck.replication.partition import Partition
from millbeck.replication.partition_appends import CallbackAppend, DelayedAppend
from millbeck.simulation.runs import node_run
from millbeck.simulation.runs.node_run import NodeRun, Plan
from millbeck.storage.flush import FlushJob, FlushResult
from millbeck.storage.producer_state import ProducerStateManager

MUTANT_SEEDS = 150
REGRESSIONS = [0, 382, 802, 839]
"""A timer set for the moment it fired in; a send on a lost connection; two retries of batches before the snapshot's."""


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_what_was_acknowledged_is_there_once_and_in_order(seed: int) -> None:
    plan = Plan.drawn(seed)
    anomalies = NodeRun(plan).run()
    assert not anomalies, f"make sim SEED={seed}\n{plan}\n" + "\n".join(map(str, anomalies[:10]))


@pytest.mark.parametrize("kept", REGRESSIONS)
def test_what_failed_once_stays_fixed(kept: int) -> None:
    assert not NodeRun(Plan.drawn(kept)).run()


def test_a_seed_decides_everything() -> None:
    digests = []
    for _ in range(2):
        run = NodeRun(Plan.drawn(3))
        run.run()
        digests.append(run.world.trace.digest())
    assert digests[0] == digests[1]


def test_the_seeds_cover_every_fault_and_both_promises() -> None:
    plans = [Plan.drawn(seed) for seed in range(60)]
    assert {fault for plan in plans for fault in plan.faults} == {
        "crash",
        "pause",
        "reset",
        "full disk",
        "slow disk",
        "cold reads",
        "clean restart",
        "power loss",
    }
    assert {plan.survives_power_loss for plan in plans} == {True, False}


# Mutants: the node broken on purpose.


def _flushes_without_the_batches(patch: pytest.MonkeyPatch) -> None:
    original = FlushJob.run

    def run(self: FlushJob) -> FlushResult:
        # Without its metadata log the node would not even start.
        self.syncs = [file for file in self.syncs if "__cluster_metadata" in file.path]
        return original(self)

    patch.setattr(FlushJob, "run", run)


def _acknowledged_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "waits_for_flush", property(lambda self: False))


def _duplicates_are_not_noticed(patch: pytest.MonkeyPatch) -> None:
    original = ProducerStateManager.stage_data

    def stage(self: ProducerStateManager, producer_id: int, *rest: Any) -> Any:
        try:
            return original(self, producer_id, *rest) and None
        except Exception:
            return None

    patch.setattr(ProducerStateManager, "stage_data", stage)


def _acknowledged_before_the_write(patch: pytest.MonkeyPatch) -> None:
    original = Partition.append

    def append(self: Partition, validated: Any, append: DelayedAppend, *, now_ms: int) -> Any:
        staged = original(
            self, validated, CallbackAppend(lambda error: None, wants_all=append.wants_all), now_ms=now_ms
        )
        append.may_wait = False
        self._event_batch.add_completion(lambda: append.complete(None))
        return staged

    patch.setattr(Partition, "append", append)


def _failed_writes_are_acknowledged(patch: pytest.MonkeyPatch) -> None:
    def fail(self: Partition, pending: Any, error: Exception) -> None:
        for append in pending:
            append.complete(None)

    patch.setattr(Partition, "_fail", fail)


MUTANTS = [
    _flushes_without_the_batches,
    _acknowledged_before_the_flush,
    _duplicates_are_not_noticed,
    _acknowledged_before_the_write,
    _failed_writes_are_acknowledged,
]


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__.strip("_"))
def test_every_mutant_is_caught(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    # No run without a mistake takes a minute; whoever reads what was lost waits for ever.
    monkeypatch.setattr(node_run, "LIMIT_SECONDS", 120.0)
    plans = [Plan.drawn(seed) for seed in range(MUTANT_SEEDS)]
    # Runs with power cuts first: what only they can show would otherwise take long to find.
    for plan in sorted(plans, key=lambda plan: "power loss" not in plan.faults):
        try:
            run = NodeRun(plan)
            # The slower a sync, the longer what is not durable yet stands in the way of a power cut.
            run.machine.disk.faults.sync_cost_s = 0.02
            if run.run():
                return
        except Exception:
            return
    pytest.fail(f"{mutate.__name__} survived {MUTANT_SEEDS} seeds: the harness does not see it")
