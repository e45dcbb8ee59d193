"""Quantiles against sorting, and a window that slides."""

from __future__ import annotations

from math import ceil, isnan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.kernel.histogram import QUANTILES, SLOT_COUNT, Histogram


def test_an_empty_window_has_no_quantiles() -> None:
    assert [isnan(quantile) for quantile in Histogram().quantiles()] == [True] * len(QUANTILES)


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=200))
@settings(max_examples=100)
def test_quantiles_are_close_to_those_of_the_sorted_values(values: list[float]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    exact = [sorted(values)[max(ceil(share * len(values)), 1) - 1] for share in QUANTILES]
    assert histogram.quantiles() == pytest.approx(exact, rel=0.0115)
    assert histogram.count == len(values)
    assert histogram.total == pytest.approx(sum(values))


def test_a_value_that_stands_for_many_counts_as_many() -> None:
    histogram = Histogram()
    histogram.record_many(8.0, 15)
    histogram.record(2.0)
    assert (histogram.count, histogram.total) == (16, 122.0)
    assert histogram.quantiles([0.05, 0.5]) == pytest.approx([2.0, 8.0], rel=0.02)


def test_the_window_forgets_and_the_totals_do_not() -> None:
    histogram = Histogram()
    histogram.record(100.0)
    for _ in range(SLOT_COUNT - 1):
        histogram.rotate()
        histogram.record(1.0)
    assert histogram.quantiles([0.99]) == pytest.approx([100.0], rel=0.02)
    histogram.rotate()
    assert histogram.quantiles([0.99]) == pytest.approx([1.0], rel=0.02)
    for _ in range(SLOT_COUNT - 1):
        histogram.rotate()
    assert isnan(histogram.quantiles([0.5])[0])
    assert (histogram.count, histogram.total) == (SLOT_COUNT, 100.0 + SLOT_COUNT - 1)


@pytest.mark.parametrize(("value", "shown"), [(0.0, 2.0**-10), (-5.0, 2.0**-10), (1e300, 2.0**32)])
def test_values_out_of_range_are_clamped(value: float, shown: float) -> None:
    histogram = Histogram()
    histogram.record(value)
    assert histogram.quantiles([0.5]) == pytest.approx([shown], rel=0.02)


def test_memory_is_bounded_whatever_comes() -> None:
    histogram = Histogram()
    value = 1e-9
    while value < 1e15:
        histogram.record(value)
        value *= 1.005
    assert len(histogram._current) <= 1345
