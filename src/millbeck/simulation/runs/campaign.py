"""Many seeded runs of a cluster, in parallel processes: ``make sim``.

    python -m millbeck.simulation.runs.campaign --seeds 1000            # runs them all; ends with counts of events
    python -m millbeck.simulation.runs.campaign --seed 17               # that one; a failing run is shrunk and saved
    python -m millbeck.simulation.runs.campaign --plan build/sim/17.json

A campaign with too few events fails as well: there are minimums per hundred seeds for elections, ISR changes,
truncations and acknowledged writes.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from millbeck.simulation.observer.cluster_observer import Counts
from millbeck.simulation.runs.cluster_run import ClusterPlan, ClusterRun
from millbeck.simulation.runs.plan_files import parse_plan, plan_text
from millbeck.simulation.runs.progress import print_line
from millbeck.simulation.runs.shrinking import shrink

MINIMUMS: Final = {"elections": 300, "isr_changes": 300, "truncations": 30, "acknowledged": 20_000}
"""The minimum number of events per hundred seeds."""
REPORT_EVERY: Final = 50
PLANS_DIRECTORY: Final = "build/sim"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    seed: int
    problems: tuple[tuple[str, str], ...]
    """The kind and description of each problem."""
    counts: Counts
    seconds: float
    faults: dict[str, int]


def run_seed(seed: int) -> SeedResult:
    return run_plan(ClusterPlan.drawn(seed))


def run_plan(plan: ClusterPlan) -> SeedResult:
    began_s = time.perf_counter()
    run = ClusterRun(plan)
    anomalies = run.run()
    return SeedResult(
        seed=plan.seed,
        problems=tuple((anomaly.kind, anomaly.detail) for anomaly in anomalies),
        counts=run.counts,
        seconds=time.perf_counter() - began_s,
        faults=run.faults.done,
    )


def shortfalls(counts: Counts, seed_count: int) -> list[str]:
    """The events that occurred too rarely for the runs to prove anything."""
    found = {
        "elections": counts.quorum_elections + counts.partition_elections,
        "isr_changes": counts.isr_changes,
        "truncations": counts.truncations,
        "acknowledged": counts.acknowledged,
    }
    return [
        f"{found[name]} {name} in {seed_count} seeds, at least {minimum * seed_count // 100} are required"
        for name, minimum in MINIMUMS.items()
        if found[name] < minimum * seed_count // 100
    ]


def _quiet() -> None:
    logging.disable(logging.CRITICAL)


def run_all(seeds: Sequence[int], jobs: int) -> Iterable[SeedResult]:
    """Yield outcomes as runs finish."""
    if jobs <= 1:
        yield from map(run_seed, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, initializer=_quiet, maxtasksperchild=50) as pool:
        yield from pool.imap_unordered(run_seed, seeds)


def campaign(seeds: Sequence[int], jobs: int) -> int:
    """Run a campaign; returns the exit status."""
    began_s = time.perf_counter()
    total, cpu_s, failed, faults = Counts(), 0.0, [], dict[str, int]()
    for number, outcome in enumerate(run_all(seeds, jobs), 1):
        total += outcome.counts
        cpu_s += outcome.seconds
        for kind, count in outcome.faults.items():
            faults[kind] = faults.get(kind, 0) + count
        if outcome.problems:
            failed.append(outcome.seed)
            print_line(f"seed {outcome.seed} fails: {outcome.problems[0][1]}\n  make sim SEED={outcome.seed}")
        if number % REPORT_EVERY == 0:
            elapsed_s = time.perf_counter() - began_s
            print_line(f"{number} seeds in {elapsed_s:.0f} s, {len(failed)} failed; {total}")
    elapsed_s = time.perf_counter() - began_s
    count = len(seeds)
    print_line(
        f"{count} seeds in {elapsed_s:.0f} s ({cpu_s / max(count, 1):.2f} s each), {len(failed)} failed: {failed}"
    )
    print_line(f"  {total}")
    print_line("  faults: " + ", ".join(f"{kind} {faults[kind]}" for kind in sorted(faults)))
    missing = shortfalls(total, count)
    for line in missing:
        print_line(f"empty: {line}")
    return 1 if failed or missing else 0


def replay(plan: ClusterPlan) -> int:
    """Run one plan; if it fails, shrink it to a smaller plan that fails in the same way, and save that."""
    outcome = run_plan(plan)
    print_line(f"{plan}\n{outcome.counts} in {outcome.seconds:.2f} s\nfaults: {outcome.faults}")
    if not outcome.problems:
        print_line("clean")
        return 0
    for _, detail in outcome.problems[:5]:
        print_line(f"FAILS: {detail}")

    def kind_of(candidate: ClusterPlan) -> str | None:
        problems = run_plan(candidate).problems
        return problems[0][0] if problems else None

    smaller = shrink(plan, kind_of)
    os.makedirs(PLANS_DIRECTORY, exist_ok=True)
    path = os.path.join(PLANS_DIRECTORY, f"{plan.seed}.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(plan_text(smaller, outcome.problems[0][0]))
    print_line(f"{len(smaller.schedule)} of {len(plan.schedule)} faults are enough, written to {path}:")
    for fault in smaller.schedule:
        print_line(f"  {fault}")
    return 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="millbeck.simulation.runs.campaign", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", default="")
    parser.add_argument("--plan", default="")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args(arguments)
    _quiet()
    if chosen.plan:
        with open(chosen.plan, encoding="utf-8") as file:
            return replay(parse_plan(file.read()))
    if chosen.seed:
        return replay(ClusterPlan.drawn(int(chosen.seed)))
    return campaign(range(chosen.first, chosen.first + chosen.seeds), chosen.jobs)


if __name__ == "__main__":
    sys.exit(main())
