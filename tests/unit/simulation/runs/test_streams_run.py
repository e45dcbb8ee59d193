from __future__ import annotations

import logging

from millbeck.simulation.faults.rolling import KINDS
from millbeck.simulation.runs.streams_run import StreamsPlan, StreamsRun


def test_the_seeds_draw_everything() -> None:
    plans = [StreamsPlan.drawn(seed) for seed in range(60)]
    assert {fault for plan in plans for fault in plan.faults} == set(KINDS)
    assert {plan.standbys for plan in plans} == {plan.standbys_later for plan in plans} == {0, 1, 2}
    assert {plan.threads for plan in plans} == {1, 2, 3}
    assert any(plan.source_after_s and plan.delay_ms for plan in plans)


def test_a_run_gives_tasks_and_takes_commits() -> None:
    logging.disable(logging.CRITICAL)
    try:
        run = StreamsRun(StreamsPlan.drawn(1))
        assert run.run() == []
    finally:
        logging.disable(logging.NOTSET)
    assert run.history.grant_count
    assert run.history.commit_count
    assert run.history.refusal_count
