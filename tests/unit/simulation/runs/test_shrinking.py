"""Delta debugging, on lists and on plans."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.simulation.runs.cluster_run import ClusterPlan
from millbeck.simulation.runs.shrinking import minimal, shrink


@settings(max_examples=60)
@given(st.sets(st.integers(0, 19), max_size=5))
def test_exactly_what_is_needed_is_left(needed: set[int]) -> None:
    assert set(minimal(range(20), lambda items: needed <= set(items))) == needed


def test_a_plan_is_shrunk_as_long_as_it_fails_in_the_same_way() -> None:
    plan = ClusterPlan.drawn(3)
    culprit = plan.schedule[2]

    def kind_of(candidate: ClusterPlan) -> str | None:
        if culprit not in candidate.schedule:
            return None
        return "D4" if candidate.partition_count == plan.partition_count else "D5"

    smaller = shrink(plan, kind_of)
    assert smaller.schedule == (culprit,)
    assert smaller.partition_count == plan.partition_count
    assert (smaller.producer_count, smaller.batch_count) == (1, 5)


def test_a_plan_that_does_not_fail_stays_as_it_is() -> None:
    plan = ClusterPlan.drawn(4)
    assert shrink(plan, lambda candidate: None) is plan
