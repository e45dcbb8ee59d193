"""A plan is its seed, the seeds cover the cleaner's own faults, and a run without faults compacts."""

from __future__ import annotations

import logging
from dataclasses import replace

from millbeck.simulation.runs.table_run import CompactionRun, TablePlan


def test_a_plan_is_its_seed() -> None:
    assert TablePlan.drawn(5) == TablePlan.drawn(5)
    plans = [TablePlan.drawn(seed) for seed in range(60)]
    assert {fault for plan in plans for fault in plan.faults} >= {"unwritable copies", "unsynced copies", "crash"}
    assert {plan.worker_death for plan in plans} == {0.0, 0.3}
    assert {plan.delete_retention_ms for plan in plans} == {0, 3000, 86_400_000}
    assert {plan.topic_options["cleanup.policy"] for plan in plans} == {"compact"}


def test_a_quiet_run_compacts_and_finds_nothing() -> None:
    logging.disable(logging.CRITICAL)
    try:
        plan = replace(TablePlan.drawn(3), fault_count=0, worker_death=0.0, batch_count=40, producer_count=1)
        run = CompactionRun(plan)
        assert run.run() == []
        assert run.world.loop.is_closed()
    finally:
        logging.disable(logging.NOTSET)
    assert run.unexpected_errors == 0
    assert run.history.compaction_count > 0
    assert run.history.scans
    assert sum(map(len, run.history.final.values())) < len(run.history.sends)
