"""Runs a mutant, and determines which checkers detect it.

A mutant is killed by the first run that ends with an anomaly. Then the checker that found it is disabled and the same
run is repeated, until the mutant survives: the disabled checkers are those that detect the mistake in that run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from millbeck.simulation.mutants.catalogue import MUTANTS, Mutant
from millbeck.simulation.mutants.patching import patched
from millbeck.simulation.runs.cluster_run import ClusterPlan, ClusterRun

SEEDS: Final = 200
CHECKERS_MAX: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantResult:
    name: str
    seed: int
    """The seed of the run that killed it; -1 if it survived."""
    first: str
    killers: tuple[str, ...]
    survives: bool
    """Whether it survives the same run when those checkers are disabled."""
    seconds: float


def kind_of(plan: ClusterPlan) -> tuple[str, str] | None:
    anomalies = ClusterRun(plan).run()
    return (anomalies[0].kind, anomalies[0].detail) if anomalies else None


def judge(mutant: Mutant, seeds: int = SEEDS) -> MutantResult:
    began_s = time.perf_counter()
    with patched() as patch:
        mutant.apply(patch)
        for seed in range(seeds):
            plan = mutant.plan(seed)
            found = kind_of(plan)
            if found is not None:
                killers, survives = _killers(plan, found[0])
                seconds = time.perf_counter() - began_s
                return MutantResult(
                    name=mutant.name, seed=seed, first=found[1], killers=killers, survives=survives, seconds=seconds
                )
    seconds = time.perf_counter() - began_s
    return MutantResult(name=mutant.name, seed=-1, first="", killers=(), survives=True, seconds=seconds)


def _killers(plan: ClusterPlan, first: str) -> tuple[tuple[str, ...], bool]:
    killers = [first]
    while len(killers) < CHECKERS_MAX:
        found = kind_of(replace(plan, omitted=frozenset(killers)))
        if found is None:
            return tuple(killers), True
        killers.append(found[0])
    return tuple(killers), False


def judge_named(name: str) -> MutantResult:
    logging.disable(logging.CRITICAL)
    return judge(next(mutant for mutant in MUTANTS if mutant.name == name))


def table(verdicts: Sequence[MutantResult]) -> str:
    lines = ["", "| mutant | killed after | by | survives without |", "|---|---|---|---|"]
    for verdict in verdicts:
        killed = "ALIVE" if verdict.seed < 0 else f"{verdict.seed + 1} seeds, {verdict.seconds:.0f} s"
        without = ", ".join(verdict.killers)
        if not verdict.survives:
            without = f"still killed without {without}"
        lines.append(f"| {verdict.name} | {killed} | {verdict.killers[0] if verdict.killers else '-'} | {without} |")
    return "\n".join(lines)
