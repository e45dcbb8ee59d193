"""What a seed decides of a cluster's run; the runs themselves are in tests/sim."""

from __future__ import annotations

from millbeck.simulation.faults import schedule as kinds
from millbeck.simulation.runs.cluster_run import LIVENESS, ClusterPlan, ClusterRun


def test_a_plan_is_its_seed() -> None:
    assert ClusterPlan.drawn(7) == ClusterPlan.drawn(7)
    assert ClusterPlan.drawn(7) != ClusterPlan.drawn(8)


def test_records_are_acknowledged_by_two_and_everything_is_cut_only_where_that_is_survived() -> None:
    for seed in range(100):
        plan = ClusterPlan.drawn(seed)
        assert plan.topic_options["min.insync.replicas"] == "2"
        assert len(plan.schedule) >= 5
        assert {fault.kind for fault in plan.schedule} <= set(kinds.KINDS)
        if kinds.POWER_LOSS_OF_ALL in {fault.kind for fault in plan.schedule}:
            assert plan.topic_options["flush.messages"] == "1"


def test_a_cluster_that_does_not_come_back_is_an_anomaly() -> None:
    run = ClusterRun(ClusterPlan(seed=1, settings={"broker.session.timeout.ms": "3600000"}, absent=0.0, batch_count=2))
    (anomaly,) = run.run()
    assert anomaly.kind == LIVENESS
    assert "without n1" in anomaly.detail


def test_an_omitted_checker_says_nothing() -> None:
    plan = ClusterPlan(
        seed=1,
        settings={"broker.session.timeout.ms": "3600000"},
        absent=0.0,
        batch_count=2,
        omitted=frozenset({LIVENESS}),
    )
    assert ClusterRun(plan).run() == []
