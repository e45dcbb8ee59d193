"""The arithmetic of quotas, with times of one's own."""

from __future__ import annotations

import pytest

from millbeck.server.quotas.rates import TokenBucket, WindowedRate


def test_the_rate_covers_at_least_all_full_windows() -> None:
    rate = WindowedRate()
    rate.record(1000, 5000)
    assert rate.rate(5000) == 100.0
    assert rate.rate(5999) == pytest.approx(1000 / 10.999)
    assert rate.rate(6000) == 100.0


def test_samples_end_with_their_windows() -> None:
    rate = WindowedRate()
    for second in range(11):
        rate.record(100, second * 1000)
    assert rate.rate(10_000) == 110.0
    rate.record(100, 11_000)
    assert rate.rate(11_000) == 110.0
    assert rate.rate(21_999) == pytest.approx(100 * 1000 / 10_999)
    assert rate.rate(22_000) == 0.0


def test_the_wait_brings_the_rate_down_to_the_quota() -> None:
    rate = WindowedRate()
    rate.record(2000, 0)
    assert rate.throttle_ms(200.0, 0) == 0
    assert rate.throttle_ms(100.0, 0) == 10_000
    assert rate.rate(10_000) == 200.0
    assert rate.throttle_ms(100.0, 11_000) == 0


def test_what_is_taken_back_did_not_count() -> None:
    rate = WindowedRate()
    rate.record(500, 0)
    rate.record(10_000, 0)
    rate.record(-10_000, 0)
    assert rate.rate(0) == 50.0


@pytest.mark.parametrize("step_bytes", [1_000, 16_384, 1_000_000])
def test_a_client_that_waits_as_told_gets_its_quota(step_bytes: int) -> None:
    """As in Kafka the first windows allow a burst, and 11 samples are added up that count as 10 windows: 10 % more."""
    quota, rate, now_ms, sent = 200_000.0, WindowedRate(), 0, []
    while now_ms < 71_000:
        rate.record(step_bytes, now_ms)
        sent.append((now_ms, step_bytes))
        now_ms += max(1, rate.throttle_ms(quota, now_ms))
    total = sum(size for at_ms, size in sent if at_ms >= 11_000)
    assert quota * 0.99 < total / 60 < quota * 1.11


def test_tokens_come_back_at_the_rate_and_may_be_owed() -> None:
    bucket = TokenBucket()
    assert bucket.tokens(2.0, 1000) == 22.0
    bucket.take(30, 2.0, 1000)
    assert bucket.throttle_ms(2.0, 1000) == 4000
    assert bucket.throttle_ms(2.0, 4000) == 1000
    assert bucket.throttle_ms(2.0, 5000) == 0
    assert bucket.tokens(2.0, 100_000) == 22.0
