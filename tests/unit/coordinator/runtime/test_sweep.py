"""Passes over the entities of a shard: in steps, each entity by itself, and always a next pass."""

from __future__ import annotations

from types import ModuleType

import pytest

from millbeck.coordinator.runtime import sweep
from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.sweep import Sweep
from millbeck.coordinator.runtime.timer import Operation, TimerKey, Timers

INTERVAL_MS = 1000


class Stage:
    """Notes what each step would write."""

    def __init__(self, worlds: ModuleType) -> None:
        self.scheduler = worlds.Scheduler(0)
        self.steps: list[tuple[int, list[list[str]]]] = []
        self.keys = ["a", "b", "c", "d"]
        self.timers: Timers[str] = Timers(self.scheduler, self._run)
        self.sweep: Sweep[str, str] = Sweep(
            self.timers,
            ("sweep",),
            self.visit,
            keys=self.all_keys,
            interval_ms=lambda: INTERVAL_MS,
            weight=lambda key: 100 if key == "heavy" else 0,
        )
        self.sweep.start()

    def _run(self, key: TimerKey, operation: Operation[str], failed: object, now_ms: int) -> None:
        results = operation(now_ms)
        assert isinstance(results, list)
        self.steps.append((now_ms, [list(each.records) for each in results]))

    def all_keys(self) -> list[str]:
        if "no keys" in self.keys:
            raise ValueError("no keys")
        return self.keys

    def visit(self, key: str, now_ms: int) -> Result[str, None] | None:
        if key == "bad":
            raise ValueError(key)
        if key == "nothing":
            return None
        return Result(records=[key], is_atomic=key.isupper())


@pytest.fixture
def stage(worlds: ModuleType) -> Stage:
    return Stage(worlds)


def test_records_share_a_write_unless_they_belong_together(stage: Stage) -> None:
    stage.keys = ["a", "B", "nothing", "c", "D"]
    stage.scheduler.advance(INTERVAL_MS)
    assert stage.steps == [(INTERVAL_MS, [["B"], ["D"], ["a", "c"]])]


def test_each_key_is_visited_once_and_one_that_fails_is_passed_over(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even when a step has only bad keys to offer."""
    monkeypatch.setattr(sweep, "STEP_WEIGHT_MAX", 2)
    stage.keys = ["bad"] * 5 + ["a"]
    stage.scheduler.advance(INTERVAL_MS + 10)
    assert [writes for _, writes in stage.steps][:3] == [[], [], [["a"]]]
    assert stage.timers.isolation.failure_count == 5
    stage.scheduler.advance(INTERVAL_MS + 10)
    assert [writes for _, writes in stage.steps].count([["a"]]) == 2


def test_a_step_ends_when_it_was_enough_work(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "STEP_WEIGHT_MAX", 60)
    stage.keys = ["a", "heavy", "B", "C", "d"]
    stage.scheduler.advance(INTERVAL_MS + 10)
    assert [writes for _, writes in stage.steps] == [[["a", "heavy"]], [["B"], ["C"]], [["d"]]]


def test_there_is_a_next_pass_whatever_happens(stage: Stage) -> None:
    stage.keys = ["no keys"]
    with pytest.raises(ValueError, match="no keys"):
        stage.scheduler.advance(INTERVAL_MS)
    stage.keys = ["a"]
    stage.scheduler.advance(INTERVAL_MS)
    assert stage.steps == [(2 * INTERVAL_MS, [["a"]])]
