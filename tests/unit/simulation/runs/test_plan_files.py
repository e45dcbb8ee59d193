"""Plans survive being written down."""

from __future__ import annotations

from millbeck.simulation.runs.cluster_run import ClusterPlan
from millbeck.simulation.runs.plan_files import parse_plan, plan_text


def test_a_plan_is_the_same_after_it_was_written_and_read() -> None:
    for seed in range(20):
        plan = ClusterPlan.drawn(seed)
        text = plan_text(plan, "D4")
        assert parse_plan(text) == plan
        assert text.count("\n") >= len(plan.schedule)
