"""How fast replicas may be copied."""

from __future__ import annotations

import pytest

from millbeck.replication.throttle import Throttle, is_listed


@pytest.mark.parametrize(
    ("entries", "listed"),
    [((), False), (("*",), True), (("0:1", "3:7"), True), (("3:8", "4:7"), False), (("7:3",), False)],
)
def test_replicas_are_listed_by_partition_and_broker_or_all_together(entries: tuple[str, ...], listed: bool) -> None:
    assert is_listed(entries, 3, 7) is listed


def test_a_rate_is_that_of_the_last_seconds() -> None:
    now_ms, rate = 50_000, 100
    throttle = Throttle(lambda: rate, lambda: now_ms)
    assert throttle.rate_now == 0
    throttle.record(100)
    assert (throttle.rate_now, throttle.is_exceeded) == (100, False)
    throttle.record(1)
    assert throttle.is_exceeded
    rate = 101
    assert not throttle.is_exceeded
    now_ms += 10_999
    assert 9 < throttle.rate_now < 10
    now_ms += 1
    assert throttle.rate_now == 0


def test_windows_may_be_longer_and_fewer() -> None:
    now_ms = 0
    throttle = Throttle(lambda: 100, lambda: now_ms, window_count=2, window_ms=5000)
    throttle.record(500)
    assert (throttle.rate_now, throttle.is_exceeded) == (100, False)
    now_ms = 4999
    throttle.record(1)
    assert throttle.is_exceeded
    now_ms = 10_000
    assert throttle.rate_now == 0, "both were in the first window"


def test_nobody_gets_ahead_of_the_rate_by_more_than_a_second_and_one_fetch() -> None:
    now_ms, rate, fetch_bytes, copied_bytes = 0, 1000, 300, 0
    throttle = Throttle(lambda: rate, lambda: now_ms)
    for now_ms in range(0, 60_000, 50):
        if not throttle.is_exceeded:
            throttle.record(fetch_bytes)
            copied_bytes += fetch_bytes
        # A sample leaves the window as a whole, up to a second before its last bytes are that old.
        assert copied_bytes <= rate * (1 + now_ms / 1000) * 1.1 + fetch_bytes
    assert copied_bytes >= rate * 60 * 0.95


def test_a_steady_stream_has_its_own_rate() -> None:
    now_ms = 0
    throttle = Throttle(lambda: 0, lambda: now_ms)
    for _ in range(600):
        now_ms += 100
        throttle.record(50)
    assert 450 <= throttle.rate_now <= 560
    assert throttle.is_exceeded
