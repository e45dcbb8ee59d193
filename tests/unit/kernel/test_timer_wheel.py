"""The wheel against a sorted list, and the corners of its levels."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from millbeck.kernel.timer_wheel import DEADLINE_MS_MAX, Timer, TimerWheel

LEVEL_EDGES = [64**level + offset for level in range(6) for offset in (-1, 0, 1)]


def add_named(wheel: TimerWheel, deadline_ms: int, name: object) -> Timer:
    return wheel.add(deadline_ms, lambda: name)


def fired(wheel: TimerWheel, now_ms: int) -> list[object]:
    return [callback() for callback in wheel.advance(now_ms)]


@pytest.mark.parametrize("distance_ms", [0, *LEVEL_EDGES])
@pytest.mark.parametrize("start_ms", [0, 63, 64, 1_700_000_000_123])
def test_a_timer_is_due_at_its_deadline_and_not_before(start_ms: int, distance_ms: int) -> None:
    wheel = TimerWheel(start_ms)
    add_named(wheel, start_ms + distance_ms, "it")
    if distance_ms > 0:
        assert fired(wheel, start_ms + distance_ms - 1) == []
    assert fired(wheel, start_ms + distance_ms) == ["it"]
    assert (fired(wheel, start_ms + distance_ms + 10_000), len(wheel)) == ([], 0)


def test_due_timers_come_by_deadline_and_ties_as_they_were_added() -> None:
    wheel = TimerWheel(0)
    for name, deadline_ms in [("c", 300), ("a", 5), ("d", 5000), ("b", 299), ("c2", 300), ("a2", 5)]:
        add_named(wheel, deadline_ms, name)
    assert fired(wheel, 6000) == ["a", "a2", "b", "c", "c2", "d"]


def test_ties_stay_in_order_when_the_first_was_added_from_far_away() -> None:
    wheel = TimerWheel(0)
    add_named(wheel, 100, "far")
    wheel.advance(70)
    add_named(wheel, 100, "near")
    assert fired(wheel, 100) == ["far", "near"]


def test_a_deadline_in_the_past_is_due_at_once_in_its_order() -> None:
    wheel = TimerWheel(1000)
    add_named(wheel, 1000, "now")
    add_named(wheel, 3, "long ago")
    assert wheel.next_deadline_ms() == 1000
    assert fired(wheel, 1000) == ["long ago", "now"]


def test_time_does_not_go_back() -> None:
    wheel = TimerWheel(1000)
    add_named(wheel, 1005, "it")
    assert fired(wheel, 900) == []
    assert fired(wheel, 1005) == ["it"]


def test_cancel_works_once_and_never_after_the_deadline() -> None:
    wheel = TimerWheel(0)
    timer = add_named(wheel, 10, "never")
    late = add_named(wheel, 10, "late")
    assert timer.is_pending
    assert [timer.cancel(), timer.cancel(), timer.is_pending] == [True, False, False]
    assert fired(wheel, 10) == ["late"]
    assert [late.cancel(), late.is_pending] == [False, False]


def test_cancel_finds_a_timer_that_was_dealt_out_to_a_lower_level() -> None:
    wheel = TimerWheel(0)
    timer = add_named(wheel, 5000, "it")
    wheel.advance(4990)
    assert timer.cancel()
    assert (fired(wheel, 6000), wheel.next_deadline_ms()) == ([], None)


def test_next_deadline_is_exact_nearby_and_never_late() -> None:
    wheel = TimerWheel(0)
    assert wheel.next_deadline_ms() is None
    add_named(wheel, 1_000_000, "far")
    add_named(wheel, 40, "near")
    assert wheel.next_deadline_ms() == 40
    wheel.advance(40)
    following = wheel.next_deadline_ms()
    assert following is not None
    assert 40 < following <= 1_000_000


def test_next_deadline_is_exact_nearby_wherever_the_wheel_stands_by_now() -> None:
    wheel = TimerWheel(0)
    assert fired(wheel, 6400) == []
    add_named(wheel, 6463, "near")
    assert wheel.next_deadline_ms() == 6463


def test_following_next_deadline_wakes_a_few_times_however_far_the_timer_is() -> None:
    wheel = TimerWheel(12_345)
    add_named(wheel, DEADLINE_MS_MAX, "end of time")
    wakeups = 0
    while (next_ms := wheel.next_deadline_ms()) is not None:
        wheel.advance(next_ms)
        wakeups += 1
    assert wakeups <= 11


def test_a_cancelled_timer_leaves_no_wakeup_behind() -> None:
    wheel = TimerWheel(0)
    for deadline_ms in (10, 1000, 100_000):
        add_named(wheel, deadline_ms, "it").cancel()
    assert (wheel.next_deadline_ms(), len(wheel)) == (None, 0)


deadlines = st.one_of(st.integers(0, 200), st.integers(0, 5000), st.integers(0, 2**24), st.integers(0, 2**45))


@given(st.integers(0, 2**44), st.lists(deadlines, max_size=60), st.lists(deadlines, max_size=8))
@settings(max_examples=150)
def test_wheel_equals_sorting(start_ms: int, distances: list[int], steps: list[int]) -> None:
    wheel = TimerWheel(start_ms)
    for number, distance in enumerate(distances):
        add_named(wheel, start_ms + distance, (start_ms + distance, number))
    model = sorted((start_ms + distance, number) for number, distance in enumerate(distances))
    now_ms = start_ms
    for step in [*steps, 2**45]:
        now_ms += step
        assert fired(wheel, now_ms) == [entry for entry in model if entry[0] <= now_ms]
        model = [entry for entry in model if entry[0] > now_ms]
    assert model == []


class WheelMachine(RuleBasedStateMachine):
    """Adding, cancelling and advancing in any order; the model is a dict of what is pending."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_000_000
        self.wheel = TimerWheel(self.now_ms)
        self.pending: dict[int, tuple[int, Timer]] = {}
        self.count = 0

    @rule(distance=st.one_of(st.integers(-50, 100), st.integers(0, 10_000), st.integers(0, 2**40)))
    def add(self, distance: int) -> None:
        number = self.count = self.count + 1
        deadline_ms = max(self.now_ms + distance, 0)
        self.pending[number] = (deadline_ms, add_named(self.wheel, deadline_ms, number))

    @precondition(lambda self: self.pending)
    @rule(pick=st.integers(0))
    def cancel(self, pick: int) -> None:
        number = list(self.pending)[pick % len(self.pending)]
        _, timer = self.pending.pop(number)
        assert timer.cancel()
        assert not timer.cancel()

    @rule(step=st.one_of(st.integers(0, 100), st.integers(0, 2**40)))
    def advance(self, step: int) -> None:
        self.now_ms += step
        due = sorted((deadline, number) for number, (deadline, _) in self.pending.items() if deadline <= self.now_ms)
        assert fired(self.wheel, self.now_ms) == [number for _, number in due]
        for _, number in due:
            assert not self.pending.pop(number)[1].cancel()

    @invariant()
    def next_deadline_is_never_late(self) -> None:
        assert len(self.wheel) == len(self.pending)
        next_ms = self.wheel.next_deadline_ms()
        if not self.pending:
            assert next_ms is None
        else:
            assert next_ms is not None
            assert next_ms <= max(self.now_ms, min(deadline for deadline, _ in self.pending.values()))


WheelMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestWheelMachine = WheelMachine.TestCase
