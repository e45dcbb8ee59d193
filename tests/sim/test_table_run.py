"""One node with a compacted topic, under crashes, power cuts, full disks and workers that die.

Who reads the log ends with the table that was written; offsets and order stay, deletions are heard of in time. And the
harness is not blind: each mutant is caught.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck import compiled
from millbeck.server.cleaner import work
from millbeck.server.cleaner.service import Cleaner
from millbeck.simulation.runs.table_run import CompactionRun, TablePlan
from millbeck.storage import interrupted
from millbeck.storage.compaction import plan as planning
from millbeck.storage.compaction.compactor import compact
from millbeck.storage.swap import Swap

MUTANT_SEEDS = 40


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_a_compacted_log_is_the_table_that_was_written(table_seed: int) -> None:
    plan = TablePlan.drawn(table_seed)
    run = CompactionRun(plan)
    anomalies = run.run()
    assert not anomalies, f"make sim SEED={table_seed}\n{plan}\n" + "\n".join(map(str, anomalies[:10]))
    assert run.unexpected_errors == 0


def test_a_seed_decides_everything() -> None:
    digests = []
    for _ in range(2):
        run = CompactionRun(TablePlan.drawn(7))
        run.run()
        digests.append(run.world.trace.digest())
    assert digests[0] == digests[1]


# Mutants: the cleaner broken on purpose.


def _swaps_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Swap, "_sync", lambda self: None)


class _Unsynced:
    """Files, and files in them, that are never synced."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        if name in ("sync", "sync_directory"):
            return lambda *_: None
        found = getattr(self._real, name)
        return (lambda *arguments: _Unsynced(found(*arguments))) if name == "open" else found


def _copies_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(work, "compact", lambda job, files, *rest: compact(job, _Unsynced(files), *rest))


def _tombstones_go_early(patch: pytest.MonkeyPatch) -> None:
    original = planning.prepare

    def prepare(*arguments: Any, **options: Any) -> Any:
        plan = original(*arguments, **options)
        if plan is not None:
            plan.job = replace(plan.job, delete_retention_ms=0)
        return plan

    patch.setattr(planning, "prepare", prepare)


def _all_is_said_to_be_clean(patch: pytest.MonkeyPatch) -> None:
    original = Cleaner._work

    async def work_on(self: Cleaner, run: Any, plan: Any) -> Any:
        checkpoint = self._checkpoint_of(run.name)
        if checkpoint is not None:
            checkpoint.note(run.name, plan.job.upper_offset)
        outcome = await original(self, run, plan)
        return replace(outcome, cleaned_offset=plan.job.upper_offset)

    patch.setattr(Cleaner, "_work", work_on)


def _swaps_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    def remove(files: Any, directory: str, swaps: list[str]) -> None:
        for name in swaps:
            files.unlink(f"{directory}/{name}")

    patch.setattr(interrupted, "_finish_swap", remove)


def _harsh(seed: int, *faults: str, **changes: Any) -> TablePlan:
    """A short run in which the cleaner never rests and little but the given faults happens."""
    plan = TablePlan.drawn(seed)
    options = {
        "cleanup.policy": "compact",
        "internal.segment.bytes": "300",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": str(changes.get("delete_retention_ms", 0)),
        "file.delete.delay.ms": "0",
        "flush.messages": "1",
    }
    usual: dict[str, Any] = {
        "partition_count": 1,
        "producer_count": 2,
        "batch_count": 30,
        "fault_count": 8,
        "key_count": 5,
        "worker_death": 0.0,
        "delete_retention_ms": 0,
        "thread_delay_s": 0.1,
        "limit_s": 100.0,
        "broker_options": (("log.cleaner.backoff.ms", "20"),),
    }
    return replace(plan, survives_power_loss=True, faults=faults, topic_options=options, **(usual | changes))


TINY_MEMORY = (("log.cleaner.backoff.ms", "20"), ("log.cleaner.io.buffer.load.factor", "0.000003"))
MUTANTS: dict[Callable[[pytest.MonkeyPatch], None], Callable[[int], TablePlan]] = {
    _swaps_are_not_synced: lambda seed: _harsh(seed, "power loss"),
    _copies_are_not_synced: lambda seed: _harsh(seed, "power loss"),
    _tombstones_go_early: lambda seed: _harsh(seed, "pause", delete_retention_ms=86_400_000, key_count=40),
    _all_is_said_to_be_clean: lambda seed: _harsh(
        seed, "pause", broker_options=TINY_MEMORY, key_count=60, batch_count=90
    ),
    _swaps_are_forgotten: lambda seed: _harsh(seed, "crash"),
}
"""Each with the plan that shows it soonest."""


@pytest.mark.parametrize("plan_of", MUTANTS.values(), ids=[mutate.__name__.strip("_") for mutate in MUTANTS])
def test_the_plans_for_mutants_find_nothing_without_one(plan_of: Callable[[int], TablePlan]) -> None:
    assert CompactionRun(plan_of(0)).run() == []


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__.strip("_"))
def test_every_mutant_is_caught(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    for seed in range(MUTANT_SEEDS):
        try:
            if CompactionRun(MUTANTS[mutate](seed)).run():
                return
        except Exception:
            return
    pytest.fail(f"{mutate.__name__} survived {MUTANT_SEEDS} seeds: the harness does not see it")
