"""Every operation ends exactly once, in the order of parking, and leaves nothing behind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.kernel.purgatory import Parked, Purgatory
from millbeck.kernel.timer_wheel import TimerWheel


class Waiting:
    """Completes once it is ready; writes how it ended to a journal."""

    def __init__(self, name: str, journal: list[str], is_ready: bool = False) -> None:
        self.name = name
        self.journal = journal
        self.is_ready = is_ready
        self.tried_count = 0

    def try_complete(self) -> bool:
        self.tried_count += 1
        if self.is_ready:
            self.journal.append(f"{self.name} completed")
        return self.is_ready

    def on_expired(self) -> None:
        self.journal.append(f"{self.name} expired")


class House:
    def __init__(self) -> None:
        self.wheel = TimerWheel(0)
        self.purgatory: Purgatory[str] = Purgatory(self.wheel)
        self.journal: list[str] = []

    def advance(self, now_ms: int) -> None:
        for callback in self.wheel.advance(now_ms):
            callback()


@pytest.fixture
def house() -> House:
    return House()


def test_what_is_ready_at_once_is_never_parked(house: House) -> None:
    assert house.purgatory.park(Waiting("a", house.journal, is_ready=True), ["k"], 10) is None
    assert (house.journal, len(house.purgatory), len(house.wheel)) == (["a completed"], 0, 0)


def test_notify_only_marks_and_settle_completes(house: House) -> None:
    operation = Waiting("a", house.journal)
    assert house.purgatory.park(operation, ["k", "l"], 10) is not None
    operation.is_ready = True
    house.purgatory.notify("k")
    assert house.journal == []
    assert house.purgatory.settle() == 1
    assert house.journal == ["a completed"]
    assert (len(house.purgatory), len(house.wheel), house.purgatory.watcher_count("l")) == (0, 0, 0)
    house.purgatory.notify("l")
    house.advance(100)
    assert (house.purgatory.settle(), house.journal) == (0, ["a completed"])


def test_an_operation_is_tried_once_per_settle_however_many_keys_moved(house: House) -> None:
    operation = Waiting("a", house.journal)
    house.purgatory.park(operation, ["k", "l", "k"], 10)
    for key in ("k", "l", "k", "unwatched"):
        house.purgatory.notify(key)
    assert house.purgatory.settle() == 0
    assert operation.tried_count == 2
    assert house.purgatory.settle() == 0
    assert operation.tried_count == 2


def test_one_that_could_not_complete_is_tried_again_at_the_next_notice(house: House) -> None:
    operation = Waiting("a", house.journal)
    house.purgatory.park(operation, ["k"], 10)
    house.purgatory.notify("k")
    assert house.purgatory.settle() == 0
    operation.is_ready = True
    house.purgatory.notify("k")
    assert house.purgatory.settle() == 1
    assert house.journal == ["a completed"]


def test_keys_nobody_watches_any_more_take_no_memory(house: House) -> None:
    for number in range(100):
        parked = house.purgatory.park(Waiting("a", house.journal), [f"key {number}"], 10)
        assert parked is not None
        parked.withdraw()
    assert not house.purgatory._watchers


def test_completion_follows_the_order_of_parking(house: House) -> None:
    operations = [Waiting(name, house.journal) for name in "abc"]
    for operation, key in zip(operations, ("x", "y", "z"), strict=True):
        house.purgatory.park(operation, [key], 10)
        operation.is_ready = True
    for key in ("z", "x", "y"):
        house.purgatory.notify(key)
    assert house.purgatory.settle() == 3
    assert house.journal == ["a completed", "b completed", "c completed"]


def test_the_deadline_ends_it(house: House) -> None:
    house.purgatory.park(Waiting("a", house.journal), ["k"], 10)
    house.advance(9)
    assert house.journal == []
    house.advance(10)
    assert (house.journal, len(house.purgatory), house.purgatory.watcher_count("k")) == (["a expired"], 0, 0)


def test_completed_in_the_turn_of_its_deadline_does_not_expire_too(house: House) -> None:
    operation = Waiting("a", house.journal)
    house.purgatory.park(operation, ["k"], 10)
    operation.is_ready = True
    due = house.wheel.advance(10)
    house.purgatory.notify("k")
    house.purgatory.settle()
    for callback in due:
        callback()
    assert house.journal == ["a completed"]


def test_expired_after_being_marked_is_not_tried_again(house: House) -> None:
    operation = Waiting("a", house.journal)
    house.purgatory.park(operation, ["k"], 10)
    house.purgatory.notify("k")
    house.advance(10)
    operation.is_ready = True
    assert house.purgatory.settle() == 0
    assert house.journal == ["a expired"]


def test_withdraw_ends_it_silently_and_once(house: House) -> None:
    parked = house.purgatory.park(Waiting("a", house.journal), ["k"], 10)
    assert parked is not None
    assert [parked.withdraw(), parked.withdraw()] == [True, False]
    house.advance(100)
    assert (house.journal, len(house.purgatory), len(house.wheel)) == ([], 0, 0)


def test_one_that_raises_keeps_waiting_and_does_not_cost_the_others_their_turn(house: House) -> None:
    class Broken(Waiting):
        def try_complete(self) -> bool:
            if self.is_ready:
                raise RuntimeError(self.name)
            return False

    operations = [Waiting("w", house.journal), Broken("a", house.journal), Waiting("b", house.journal)]
    for operation in operations:
        house.purgatory.park(operation, ["k"], 10)
        operation.is_ready = True
    house.purgatory.notify("k")
    with pytest.raises(RuntimeError, match="a"):
        house.purgatory.settle()
    assert house.purgatory.settle() == 1
    house.advance(10)
    assert house.journal == ["w completed", "b completed", "a expired"]


def test_an_operation_may_withdraw_itself_while_completing(house: House) -> None:
    class Closing(Waiting):
        def try_complete(self) -> bool:
            done = super().try_complete()
            if done and parked is not None:
                parked.withdraw()
            return done

    parked = None
    operation = Closing("a", house.journal)
    parked = house.purgatory.park(operation, ["k"], 10)
    operation.is_ready = True
    house.purgatory.notify("k")
    assert house.purgatory.settle() == 1
    assert (house.journal, len(house.purgatory)) == (["a completed"], 0)


def test_what_is_notified_during_settle_is_tried_by_the_next(house: House) -> None:
    class Chained(Waiting):
        def try_complete(self) -> bool:
            done = super().try_complete()
            if done:
                house.purgatory.notify("next")
            return done

    first, second = Chained("a", house.journal), Waiting("b", house.journal)
    house.purgatory.park(first, ["k"], 10)
    house.purgatory.park(second, ["next"], 10)
    first.is_ready = second.is_ready = True
    house.purgatory.notify("k")
    assert [house.purgatory.settle(), house.purgatory.settle()] == [1, 1]
    assert house.journal == ["a completed", "b completed"]


steps = st.lists(st.tuples(st.sampled_from(["park", "ready", "settle", "advance", "withdraw"]), st.integers(0, 7)))


@given(steps)
@settings(max_examples=100)
def test_each_operation_ends_at_most_once_and_no_watcher_is_left(script: list[tuple[str, int]]) -> None:
    house = House()
    now_ms = 0
    parked: list[tuple[Waiting, Parked[str] | None]] = []
    for step, number in script:
        if step == "park":
            operation = Waiting(f"{len(parked)}", house.journal)
            parked.append(
                (operation, house.purgatory.park(operation, ["abc"[number % 3], "xy"[number % 2]], now_ms + number))
            )
        elif step == "ready" and parked:
            parked[number % len(parked)][0].is_ready = True
            house.purgatory.notify("abcxy"[number % 5])
        elif step == "settle":
            house.purgatory.settle()
        elif step == "advance":
            now_ms += number
            house.advance(now_ms)
        elif step == "withdraw" and parked:
            entry = parked[number % len(parked)][1]
            assert entry is not None
            entry.withdraw()
    waiting_count = sum(1 for _, entry in parked if entry is not None and not entry.is_over)
    assert len(house.purgatory) == len(house.wheel) == waiting_count
    house.advance(now_ms + 10)
    assert len({line.split()[0] for line in house.journal}) == len(house.journal)
    assert [house.purgatory.watcher_count(key) for key in "abcxy"] == [0] * 5
