from __future__ import annotations

import logging

from millbeck.simulation.faults.rolling import KINDS
from millbeck.simulation.runs.groups_run import GroupsPlan, GroupsRun


def test_the_seeds_draw_everything() -> None:
    plans = [GroupsPlan.drawn(seed) for seed in range(60)]
    assert {fault for plan in plans for fault in plan.faults} == set(KINDS)
    assert {plan.assignment_interval_ms for plan in plans} == {0, 200, 1000}
    assert any(plan.behaviour.die and plan.behaviour.stall for plan in plans)


def test_a_run_gives_partitions_and_takes_commits() -> None:
    logging.disable(logging.CRITICAL)
    try:
        run = GroupsRun(GroupsPlan.drawn(1))
        assert run.run() == []
    finally:
        logging.disable(logging.NOTSET)
    assert run.history.grant_count
    assert run.history.commit_count
    assert run.history.refusal_count
