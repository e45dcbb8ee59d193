"""When a connector is asked for its next plan."""

from __future__ import annotations

import pytest

from millbeck.pipeline.connect.worker.turns import IDLE_MIN_S, TurnClock

CASES = {
    "more at once": ((0.0, 2, 2, None), 0.0),
    "in a while": ((5.0, 2, 2, None), 5.0),
    "when woken": ((None, 0, 0, None), None),
    "when woken, or a task may work again": ((None, 0, 0, 103.0), 3.0),
    "at once of nothing": ((0.0, 0, 0, None), IDLE_MIN_S),
    "all of it rests": ((0.0, 0, 3, None), IDLE_MIN_S),
    "some found no task": ((None, 1, 3, None), 0.0),
    "later than the next attempt": ((60.0, 1, 1, 102.0), 2.0),
}


@pytest.mark.parametrize(("given", "wait_s"), CASES.values(), ids=CASES.keys())
def test_the_wait_after_a_plan(given: tuple[float | None, int, int, float | None], wait_s: float | None) -> None:
    again_s, ran, planned, retry_s = given
    clock = TurnClock()
    clock.planned(100.0, again_s, ran=ran, planned=planned, retry_s=retry_s)
    assert clock.wait_s(100.0) == wait_s


def test_what_wakes_during_a_turn_is_for_the_next() -> None:
    clock = TurnClock()
    clock.wake()
    clock.begin()
    clock.wake()
    clock.planned(0.0, None, ran=0, planned=0, retry_s=None)
    assert clock.wait_s(0.0) == 0.0
    clock.begin()
    assert clock.wait_s(0.0) is None


def test_the_first_plan_is_asked_for_at_once() -> None:
    assert TurnClock().wait_s(1.0) == 0.0
