"""Waiting times double, stay bounded and differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millbeck.client.backoff import Backoff


class Dice:
    def __init__(self, part: float) -> None:
        self.part = part

    def below(self, bound: int) -> int:
        return int(self.part * bound)

    def uuid(self) -> bytes:
        raise AssertionError


def test_times_double_up_to_the_limit() -> None:
    backoff = Backoff(Dice(0.5), first_ms=100, max_ms=1000)
    assert [backoff.delay_s(failures) for failures in range(7)] == [0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@given(st.integers(1, 10_000), st.floats(0, 0.999))
def test_a_fifth_more_or_less(failures: int, part: float) -> None:
    middle = Backoff(Dice(0.5), first_ms=50, max_ms=2000).delay_s(failures)
    delay = Backoff(Dice(part), first_ms=50, max_ms=2000).delay_s(failures)
    assert 0.8 * middle <= delay <= 1.2 * middle


def test_a_first_time_above_the_limit_is_the_limit() -> None:
    assert Backoff(Dice(0.5), first_ms=500, max_ms=100).delay_s(1) == 0.1
