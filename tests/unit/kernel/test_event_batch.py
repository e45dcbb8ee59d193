"""A turn does what was marked in the fixed order, once, and one failure does not cost the others."""

from __future__ import annotations

from collections.abc import Callable

from millbeck.kernel.event_batch import EventBatch


class Scheduler:
    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []

    def __call__(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def run_turn(self) -> None:
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()


class Part:
    def __init__(self, story: list[str], turn: EventBatch) -> None:
        self.story = story
        self.turn = turn

    def write(self) -> None:
        self.story.append("write")

    def advance_high_watermark(self) -> None:
        self.story.append("watermark")
        self.turn.add_completion(lambda: self.story.append("complete"))

    def flush_replies(self) -> None:
        self.story.append("reply")


def make() -> tuple[EventBatch, Scheduler, list[Exception]]:
    scheduler = Scheduler()
    errors: list[Exception] = []
    return EventBatch(scheduler, errors.append), scheduler, errors


def test_steps_run_in_order_within_one_turn_whatever_the_order_of_marks() -> None:
    turn, scheduler, _ = make()
    story: list[str] = []
    part = Part(story, turn)
    turn.mark_replies(part)
    turn.add_append(part)
    assert len(scheduler.callbacks) == 1
    scheduler.run_turn()
    assert story == ["write", "watermark", "complete", "reply"]
    assert scheduler.callbacks == []


def test_a_mark_for_an_earlier_step_waits_for_the_next_turn() -> None:
    turn, scheduler, _ = make()
    story: list[str] = []
    part = Part(story, turn)
    turn.add_completion(lambda: turn.add_append(part))
    scheduler.run_turn()
    assert story == []
    scheduler.run_turn()
    assert story == ["write", "watermark", "complete"]


def test_what_raises_is_reported_and_the_rest_goes_on() -> None:
    turn, scheduler, errors = make()
    story: list[str] = []

    def explode() -> None:
        raise ValueError("a bug")

    turn.add_completion(explode)
    turn.add_completion(lambda: story.append("after"))
    turn.mark_replies(Part(story, turn))
    scheduler.run_turn()
    assert story == ["after", "reply"]
    assert [str(error) for error in errors] == ["a bug"]


def test_the_turn_can_be_marked_again_after_it_ran() -> None:
    turn, scheduler, _ = make()
    story: list[str] = []
    for _ in range(3):
        turn.mark_replies(Part(story, turn))
        scheduler.run_turn()
    assert story == ["reply"] * 3


def test_whoever_is_alone_runs_the_turn_without_arranging_one() -> None:
    scheduler = Scheduler()
    turn = EventBatch(scheduler, list[Exception]().append, lambda: True)
    story: list[str] = []
    assert turn.begin()
    turn.add_append(Part(story, turn))
    turn.mark_replies(Part(story, turn))
    turn.end()
    assert story == ["write", "watermark", "complete", "reply"]
    assert scheduler.callbacks == []


def test_in_company_or_within_a_turn_nobody_is_alone() -> None:
    scheduler = Scheduler()
    assert not EventBatch(scheduler, list[Exception]().append).begin()
    assert not EventBatch(scheduler, list[Exception]().append, lambda: False).begin()
    turn = EventBatch(scheduler, list[Exception]().append, lambda: True)
    turn.add_append(Part([], turn))
    assert not turn.begin()
    scheduler.run_turn()
    assert turn.begin()
    assert not turn.begin()


def test_what_the_last_steps_mark_is_arranged_as_ever() -> None:
    scheduler = Scheduler()
    turn = EventBatch(scheduler, list[Exception]().append, lambda: True)
    story: list[str] = []
    part = Part(story, turn)
    assert turn.begin()
    turn.add_completion(lambda: turn.add_append(part))
    turn.end()
    assert story == []
    scheduler.run_turn()
    assert story == ["write", "watermark", "complete"]
