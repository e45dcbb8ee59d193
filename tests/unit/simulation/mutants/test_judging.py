"""How a mutant is judged: the first run that notices it, and all checkers that do."""

from __future__ import annotations

import pytest

from millbeck.simulation.mutants import judging
from millbeck.simulation.mutants.catalogue import Mutant
from millbeck.simulation.mutants.judging import MutantResult, judge, table
from millbeck.simulation.runs.cluster_run import ClusterPlan

MUTANT = Mutant(name="nothing", apply=lambda patch: None)


def test_checkers_are_left_out_until_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def kind_of(plan: ClusterPlan) -> tuple[str, str] | None:
        noticing = [kind for kind in ("D4", "D7") if kind not in plan.omitted]
        return (noticing[0], "as it should") if plan.seed >= 2 and noticing else None

    monkeypatch.setattr(judging, "kind_of", kind_of)
    verdict = judge(MUTANT, seeds=5)
    assert (verdict.seed, verdict.killers, verdict.survives) == (2, ("D4", "D7"), True)
    assert "| nothing | 3 seeds, 0 s | D4 | D4, D7 |" in table([verdict])


def test_one_that_nobody_notices_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "kind_of", lambda plan: None)
    verdict = judge(MUTANT, seeds=2)
    assert verdict.seed == -1
    assert "ALIVE" in table([verdict])


def test_one_that_everything_notices_is_said_to_be() -> None:
    verdict = MutantResult(name="m", seed=0, first="", killers=("D4",), survives=False, seconds=1.0)
    assert "still killed without D4" in table([verdict])
