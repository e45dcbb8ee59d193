"""A plan says everything about a run; the runs themselves are in tests/sim."""

from __future__ import annotations

from millbeck.simulation.runs.isolation_run import IsolationPlan


def test_a_seed_draws_the_same_plan_again() -> None:
    assert IsolationPlan.drawn(3) == IsolationPlan.drawn(3)
    assert len({IsolationPlan.drawn(seed).good_count for seed in range(20)}) > 1


def test_the_bad_one_comes_where_the_plan_says() -> None:
    plan = IsolationPlan(seed=1, good_count=2, bad_position=1)
    assert plan.names(7) == ["good-7-0", "bad-7", "good-7-1"]
