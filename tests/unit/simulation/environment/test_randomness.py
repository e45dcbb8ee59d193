"""Randomness from a seed."""

from __future__ import annotations

import random

from millbeck.simulation.environment.randomness import SimRandomness


def test_a_seed_repeats_itself() -> None:
    def drawn(seed: int) -> list[object]:
        source = SimRandomness(random.Random(seed))
        return [source.uuid(), source.below(1000), source.uuid(), source.below(10)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_no_uuid_looks_like_a_flag() -> None:
    source = SimRandomness(random.Random(1))
    assert all(source.uuid()[0] >> 2 != 62 for _ in range(2000))
