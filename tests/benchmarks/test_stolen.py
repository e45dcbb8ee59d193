"""Measurements are made again when the host took time away, and the best one is kept."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bench import stolen

Losses = Callable[..., Callable[[], float]]


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> Losses:
    """Each attempt takes a second of which the host takes the next share."""
    now = {"time": 0.0, "stolen": 0.0}
    monkeypatch.setattr(time, "monotonic", lambda: now["time"])
    monkeypatch.setattr(stolen, "stolen_seconds", lambda: now["stolen"])

    def attempts(*shares: float) -> Callable[[], float]:
        left = list(shares)

        def attempt() -> float:
            share = left.pop(0)
            now["time"] += 1
            now["stolen"] += share
            return share

        return attempt

    return attempts


CASES = {
    "left alone": ([0.05, 0.0], 0.05, []),
    "disturbed once": ([0.6, 0.02, 0.0], 0.02, [0.6]),
    "better is good enough to keep": ([0.6, 0.2, 0.4], 0.2, [0.6, 0.4]),
    "worse is thrown away": ([0.3, 0.9, 0.5], 0.3, [0.9, 0.5]),
}


@pytest.mark.parametrize(("shares", "kept", "discarded"), CASES.values(), ids=CASES.keys())
def test_the_attempt_that_lost_least_is_kept(
    losses: Losses, shares: list[float], kept: float, discarded: list[float]
) -> None:
    thrown_away: list[float] = []
    assert stolen.least_disturbed(losses(*shares), thrown_away.append) == kept
    assert thrown_away == discarded


def test_the_host_counts_what_it_takes() -> None:
    before = stolen.stolen_seconds()
    assert 0 <= before <= stolen.stolen_seconds()
