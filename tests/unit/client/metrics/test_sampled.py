"""Rates and averages over the last samples."""

from __future__ import annotations

import math

from millbeck.client.metrics.sampled import Average, Meter, Window

WINDOW = Window(30.0, 2)


def test_a_rate_is_that_of_the_last_samples_and_the_total_that_of_all_time() -> None:
    meter = Meter(WINDOW)
    assert (meter.total, meter.rate(0.0)) == (0.0, 0.0)
    for second in range(120):
        meter.add(5, second)
    assert meter.total == 600
    assert meter.rate(120) == 5.0
    assert meter.rate(145) < 5.0
    assert meter.rate(200) == 0.0
    meter.add(60, 300)
    assert meter.rate(300) == 2.0


def test_one_event_is_no_burst() -> None:
    meter = Meter(WINDOW)
    meter.add(1, 1000.0)
    assert meter.rate(1000.0) == 1 / 30


def test_averages_and_maxima_forget() -> None:
    average = Average(WINDOW)
    assert math.isnan(average.average(0))
    assert math.isnan(average.maximum(0))
    average.add(100, 0)
    average.add(10, 40)
    average.add(20, 41, count=3)
    assert (average.average(41), average.maximum(41)) == (170 / 5, 100)
    assert (average.average(65), average.maximum(65)) == (70 / 4, 20)
    assert math.isnan(average.average(101))
    average.add(7, 200)
    assert (average.average(200), average.total) == (7, 177)
