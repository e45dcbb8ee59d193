"""One bad entity never stops the others; and the run is not blind: each mutant is caught."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller.election_rules import ElectionContext
from millbeck.controller.periodic_tasks import PeriodicTasks
from millbeck.coordinator.runtime.sweep import Sweep
from millbeck.kernel.isolation import Isolation
from millbeck.simulation.runs.isolation_run import ISOLATION, IsolationPlan, IsolationRun


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_one_bad_entity_never_stops_the_others(isolation_seed: int) -> None:
    plan = IsolationPlan.drawn(isolation_seed)
    anomalies = IsolationRun(plan).run()
    assert not anomalies, f"make sim SEED={isolation_seed}\n{plan}\n" + "\n".join(map(str, anomalies[:10]))


def _raise(_: Isolation, entity: object, step: Callable[[], Any]) -> Any:
    return step()


def _passes_end_at_the_first_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Sweep._step

    def step(self: Any, now_ms: int) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(Isolation, "run", _raise)
            return original(self, now_ms)

    monkeypatch.setattr(Sweep, "_step", step)


def _duties_end_at_the_first_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PeriodicTasks, "_attempt", lambda self, duty, decide, now_ms: decide())


def _partitions_change_all_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    original = ElectionContext.changes

    def changes(self: ElectionContext, partitions: Any) -> Any:
        before = self._rules.isolation.failure_count
        found = yield from original(self, partitions)
        if self._rules.isolation.failure_count != before:
            raise ValueError("one of them failed")
        return found

    monkeypatch.setattr(ElectionContext, "changes", changes)


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a pass ends at the first failure": _passes_end_at_the_first_failure,
    "a duty that fails ends the step": _duties_end_at_the_first_failure,
    "partitions change all or none": _partitions_change_all_or_none,
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_without_isolation_the_others_are_stopped(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)
    found = [
        anomaly.kind for anomaly in IsolationRun(IsolationPlan(seed=1, bad_position=0, loses_coordinators=False)).run()
    ]
    assert ISOLATION in found
