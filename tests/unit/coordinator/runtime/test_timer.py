from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.timer import Operation, TimerKey, Timers


class Runner:
    """Carries expired operations out and notes them; fails them while told to."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []
        self.is_failing = False

    def __call__(self, key: TimerKey, operation: Operation[str], failed: Callable[[], None], now_ms: int) -> None:
        result = operation(now_ms)
        assert isinstance(result, Result)
        self.ran += [(record, now_ms) for record in result.records]
        if self.is_failing:
            failed()


def operation(name: str) -> Callable[[int], Result[str, None]]:
    return lambda _: Result(records=[name])


def test_each_key_expires_once_at_its_time(worlds: ModuleType) -> None:
    scheduler, runner = worlds.Scheduler(0), Runner()
    timers: Timers[str] = Timers(scheduler, runner)
    timers.schedule(("a",), 10, operation("a"))
    timers.schedule(("b",), 5, operation("b"))
    assert ("a",) in timers
    scheduler.advance(100)
    assert runner.ran == [("b", 5), ("a", 10)]
    assert len(timers) == 0


def test_scheduling_again_moves_a_timer(worlds: ModuleType) -> None:
    scheduler, runner = worlds.Scheduler(0), Runner()
    timers: Timers[str] = Timers(scheduler, runner)
    timers.schedule(("a",), 10, operation("old"))
    scheduler.advance(9)
    timers.schedule(("a",), 10, operation("new"))
    scheduler.advance(9)
    assert runner.ran == []
    scheduler.advance(1)
    assert runner.ran == [("new", 19)]


def test_a_cancelled_timer_does_not_run_even_when_it_is_delivered(worlds: ModuleType) -> None:
    scheduler, runner = worlds.Scheduler(0), Runner()
    timers: Timers[str] = Timers(scheduler, runner)

    def cancelling(_: Any) -> Result[str, Any]:
        timers.cancel(("b",))
        return Result(records=["a"])

    timers.schedule(("a",), 10, cancelling)
    timers.schedule(("b",), 10, operation("b"))
    scheduler.advance(10)
    assert runner.ran == [("a", 10)]
    timers.schedule(("c",), 10, operation("c"))
    timers.cancel_all()
    scheduler.advance(100)
    assert runner.ran == [("a", 10)]


def test_a_failed_expiry_is_tried_again_only_where_asked(worlds: ModuleType) -> None:
    scheduler, runner = worlds.Scheduler(0), Runner()
    timers: Timers[str] = Timers(scheduler, runner)
    runner.is_failing = True
    timers.schedule(("once",), 10, operation("once"))
    timers.schedule(("again",), 10, operation("again"), retry_ms=50)
    scheduler.advance(10)
    runner.is_failing = False
    scheduler.advance(1000)
    assert runner.ran == [("once", 10), ("again", 10), ("again", 60)]


def test_a_retry_does_not_replace_what_the_operation_scheduled_itself(worlds: ModuleType) -> None:
    scheduler, runner = worlds.Scheduler(0), Runner()
    timers: Timers[str] = Timers(scheduler, runner)

    def again(_: int) -> Result[str, None]:
        timers.schedule(("a",), 500, operation("next"))
        return Result(records=["first"])

    runner.is_failing = True
    timers.schedule(("a",), 10, again, retry_ms=50)
    scheduler.advance(100)
    assert runner.ran == [("first", 10)]
    scheduler.advance(500)
    assert runner.ran == [("first", 10), ("next", 510)]
