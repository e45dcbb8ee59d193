"""What a seed decides of a cluster's run; the runs themselves are in tests/sim."""

from __future__ import annotations

from millbeck.testing.cluster_run import FAULTS, ClusterPlan


def test_a_plan_is_its_seed() -> None:
    assert ClusterPlan.drawn(7) == ClusterPlan.drawn(7)
    assert ClusterPlan.drawn(7) != ClusterPlan.drawn(8)


def test_records_are_acknowledged_by_two_and_power_is_cut_only_where_that_is_survived() -> None:
    for seed in range(100):
        plan = ClusterPlan.drawn(seed)
        assert plan.topic_options["min.insync.replicas"] == "2"
        assert set(plan.faults) <= {*FAULTS, "power loss"}
        assert plan.fault_count >= 2
        if "power loss" in plan.faults:
            assert plan.topic_options["flush.messages"] == "1"
