"""A plan is drawn from its seed alone, and a run without faults ends with everything acknowledged and read."""

from __future__ import annotations

import logging
from dataclasses import replace

from millbeck.simulation.histories.history import SendOutcome
from millbeck.simulation.runs.node_run import NodeRun, Plan


def test_a_plan_is_its_seed() -> None:
    assert Plan.drawn(5) == Plan.drawn(5)
    assert len({str(Plan.drawn(seed)) for seed in range(20)}) == 20


def test_power_is_cut_only_where_the_log_promises_to_survive_it() -> None:
    for seed in range(200):
        plan = Plan.drawn(seed)
        assert plan.faults
        if not plan.survives_power_loss:
            assert "power loss" not in plan.faults
            assert "flush.messages" not in plan.topic_options


def test_a_quiet_run_acknowledges_and_reads_everything() -> None:
    logging.disable(logging.CRITICAL)
    try:
        run = NodeRun(replace(Plan.drawn(1), fault_count=0, batch_count=20, producer_count=2, partition_count=2))
        assert run.run() == []
    finally:
        logging.disable(logging.NOTSET)
    assert {send.outcome for send in run.history.sends} == {SendOutcome.ACKNOWLEDGED}
    read = {value for records in run.history.final.values() for _, value in records}
    assert read == {send.value for send in run.history.sends}
    assert len(run.history.sends) >= 40
    assert run.world.loop.is_closed(), "a world must be closed before it is forgotten"
