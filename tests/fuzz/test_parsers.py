"""What atheris is given to begin with is understood, and what was found before stays fixed."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.parsers.targets import TARGETS, Target

FOUND: dict[str, list[bytes]] = {}
"""Inputs that a parser once failed on."""


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_mutated_seeds_are_refused_or_understood(target: Target) -> None:
    dice = random.Random(1)
    for seed in target.seeds:
        for _ in range(200):
            mutated = bytearray(seed)
            for _ in range(dice.randint(0, 4)):
                mutated[dice.randrange(len(mutated))] = dice.randrange(256)
            target(bytes(mutated[: dice.randint(1, len(mutated))] if dice.random() < 0.3 else mutated))


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_stays_fixed(name: str) -> None:
    for data in FOUND[name]:
        TARGETS[name](data)
