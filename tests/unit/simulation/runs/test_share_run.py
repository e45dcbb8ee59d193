from __future__ import annotations

import logging

from millbeck.simulation.faults.rolling import KINDS
from millbeck.simulation.runs.share_run import SharePlan, ShareRun


def test_the_seeds_draw_everything() -> None:
    plans = [SharePlan.drawn(seed) for seed in range(60)]
    assert {fault for plan in plans for fault in plan.faults} == set(KINDS)
    assert {plan.delivery_limit for plan in plans} == {2, 5}
    assert {plan.acquire_mode for plan in plans} == {"batch_optimized", "record_limit"}


def test_a_run_settles_records_and_gives_some_out_again() -> None:
    logging.disable(logging.CRITICAL)
    try:
        run = ShareRun(SharePlan.drawn(9))
        assert run.run() == []
    finally:
        logging.disable(logging.NOTSET)
    assert run.history.confirmed_count
    assert run.history.redelivered_count
