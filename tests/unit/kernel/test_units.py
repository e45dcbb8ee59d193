"""The names mean what they say."""

from __future__ import annotations

from millbeck.kernel import units


def test_sizes_and_times() -> None:
    assert (units.KIB, units.MIB, units.GIB) == (2**10, 2**20, 2**30)
    assert (units.SECOND_MS, units.MINUTE_MS, units.HOUR_MS, units.DAY_MS) == (1_000, 60_000, 3_600_000, 86_400_000)
    assert (units.INT_MAX, units.LONG_MAX) == (2_147_483_647, 9_223_372_036_854_775_807)
