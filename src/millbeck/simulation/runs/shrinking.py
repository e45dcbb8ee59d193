"""Makes a failing run smaller: fewer faults, fewer clients and partitions, as long as it fails in the same way.

The schedule is data, and every part of a run draws from its own random stream: the remaining faults of a schedule have
the same effects as before, as far as the state of the cluster permits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from millbeck.simulation.runs.cluster_run import ClusterPlan

T = TypeVar("T")


def minimal(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """A part of ``items`` that still fails and from which no single one can be left out (delta debugging)."""
    kept = tuple(items)
    parts = 2
    while len(kept) >= 2:
        size = -(-len(kept) // parts)
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            if fails(fewer):
                kept, parts = fewer, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), parts * 2)
    return () if kept and len(kept) == 1 and fails(()) else kept


def shrink(plan: ClusterPlan, kind_of: Callable[[ClusterPlan], str | None]) -> ClusterPlan:
    """Shrink a plan; ``kind_of`` runs a plan and returns the kind of its failure, None if it passes."""
    kind = kind_of(plan)
    if kind is None:
        return plan

    def still_fails(candidate: ClusterPlan) -> bool:
        return kind_of(candidate) == kind

    for smaller in (replace(plan, absent=-1.0), replace(plan, think_s=2 * plan.think_s)):
        if smaller != plan and still_fails(smaller):
            plan = smaller
    base = plan
    plan = replace(base, schedule=minimal(base.schedule, lambda faults: still_fails(replace(base, schedule=faults))))
    for change in ({"producer_count": 1}, {"partition_count": 1}, {"batch_count": 5}, {"voters_in_log": False}):
        candidate = replace(plan, **change)
        if candidate != plan and still_fails(candidate):
            plan = candidate
    return plan
