"""Schedules are drawn from dice, and are data."""

from __future__ import annotations

import random

from millbeck.simulation.faults.schedule import CRASH, KINDS, PAUSE, draw_schedule


def test_a_schedule_is_its_dice_and_in_order() -> None:
    one = draw_schedule(random.Random(1), KINDS, count=30, over_s=20)
    assert one == draw_schedule(random.Random(1), KINDS, count=30, over_s=20)
    assert one != draw_schedule(random.Random(2), KINDS, count=30, over_s=20)
    assert [fault.at_s for fault in one] == sorted(fault.at_s for fault in one)
    assert all(0 <= fault.target < 1 and 0 <= fault.value < 1 and 0 < fault.seconds < 13 for fault in one)
    assert max(fault.at_s for fault in one) <= 20


def test_only_the_kinds_that_were_chosen_are_drawn_and_a_fault_says_how_to_make_it() -> None:
    faults = draw_schedule(random.Random(3), (CRASH, PAUSE), count=20, over_s=5)
    assert {fault.kind for fault in faults} == {CRASH, PAUSE}
    assert str(faults[0]).startswith(f"Fault({faults[0].at_s!r}, '")
