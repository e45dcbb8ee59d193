from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.server.metrics.recent import RecentRate


def test_a_rate_is_that_of_the_last_while() -> None:
    rate = RecentRate(100, 10.0)
    assert rate.read(100, 10.0) == 0
    assert rate.read(120, 20.0) == 2
    assert rate.read(400, 70.0) == 5
    assert rate.read(400, 100.0) == 0, "what was asked half a window ago is where it starts from"


def test_a_rate_that_is_asked_for_rarely_reaches_back_to_the_last_question() -> None:
    rate = RecentRate(0, 0.0)
    rate.read(0, 1000.0)
    assert rate.read(500, 2000.0) == 0.5


@settings(max_examples=50)
@given(steps=st.lists(st.tuples(st.floats(0.01, 100), st.integers(0, 1000)), min_size=1, max_size=30))
def test_a_rate_is_never_beyond_what_the_counter_did(steps: list[tuple[float, int]]) -> None:
    value, now_s = 0, 0.0
    rate = RecentRate(value, now_s)
    fastest = 0.0
    for seconds, growth in steps:
        now_s += seconds
        value += growth
        fastest = max(fastest, growth / seconds)
        assert 0 <= rate.read(value, now_s) <= fastest * 1.001
