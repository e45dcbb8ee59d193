"""The throttle against a clock that moves only when somebody sleeps."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.kernel.environment import WorkCancelled, WorkerContext
from millbeck.server.cleaner.throttle import RateThrottle
from millbeck.storage.compaction.job import CompactionCancelled


class Place:
    def __init__(self) -> None:
        self.now = 100.0
        self.said: Any = None
        self.is_stopped = False
        self.naps: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        if self.is_stopped:
            raise WorkCancelled
        if seconds:
            self.naps.append(seconds)
        self.now += seconds

    def word(self) -> object:
        return self.said


def throttle_in(place: Place, rate: float) -> RateThrottle:
    return RateThrottle(cast(WorkerContext, place), rate)


@settings(max_examples=60, deadline=None)
@given(
    pieces=st.lists(st.tuples(st.integers(0, 500_000), st.floats(0, 0.5)), min_size=1, max_size=40),
    rate=st.sampled_from([1e3, 1e5, 1e7]),
)
def test_never_more_than_the_rate_allows_and_no_longer_than_it_asks(
    pieces: list[tuple[int, float]], rate: float
) -> None:
    place = Place()
    throttle = throttle_in(place, rate)
    began, done, worked = place.now, 0, 0.0
    for size, seconds in pieces:
        place.now += seconds
        worked += seconds
        throttle(size)
        done += size
        assert done / rate <= place.now - began + 0.006
    assert place.now - began <= done / rate + worked + 0.001


def test_time_in_which_nothing_was_done_is_not_saved_up() -> None:
    place = Place()
    throttle = throttle_in(place, 1000.0)
    place.now += 3600
    throttle(0)
    before = place.now
    throttle(5000)
    assert place.now - before >= 4.99


def test_without_a_limit_there_is_no_rest() -> None:
    place = Place()
    throttle = throttle_in(place, 1.7976931348623157e308)
    for _ in range(100):
        throttle(1 << 30)
    assert place.naps == []


def test_a_new_rate_is_obeyed_at_once_even_in_the_middle_of_a_nap() -> None:
    place = Place()
    throttle = throttle_in(place, 10.0)
    place.said = 1000.0
    throttle(2000)
    assert place.now - 100.0 == pytest.approx(2.0, abs=0.01)

    slow = Place()
    throttle = throttle_in(slow, 10.0)

    def hurry(seconds: float) -> None:
        slow.now += seconds
        slow.said = 1e6

    slow.pause = hurry  # type: ignore[method-assign]
    throttle(1000)
    assert slow.now - 100.0 < 1.0


def test_what_was_done_at_another_rate_is_slept_off_at_the_new_one() -> None:
    place = Place()
    throttle = throttle_in(place, 1000.0)

    def slow_down(seconds: float) -> None:
        place.now += seconds
        place.said = 500.0 if seconds else None

    place.pause = slow_down  # type: ignore[method-assign]
    throttle(1000)
    assert place.now - 100.0 == pytest.approx(1.5, abs=0.01)


@pytest.mark.parametrize("nonsense", ["fast", 0, -5, None])
def test_words_that_are_no_rate_are_passed_over(nonsense: Any) -> None:
    place = Place()
    place.said = nonsense
    throttle_in(place, 100.0)(50)
    assert place.now - 100.0 == pytest.approx(0.5, abs=0.01)


def test_work_that_is_not_wanted_ends() -> None:
    place = Place()
    throttle = throttle_in(place, 100.0)
    place.is_stopped = True
    with pytest.raises(CompactionCancelled):
        throttle(1)
