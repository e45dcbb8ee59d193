"""``--seed`` chooses one run: ``make sim SEED=17``. ``--seeds`` says how many are run without it."""

from __future__ import annotations

import pytest

SEEDS_PER_RUN = {
    "seed": 1,
    "quorum_seed": 3,
    "table_seed": 4,
    "registry_seed": 12,
    "damage_seed": 10,
    "group_seed": 15,
    "client_seed": 10,
    "streams_seed": 15,
    "share_seed": 30,
    "isolation_seed": 30,
}
"""By fixture: longer runs get one of so many seeds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", default="", help="run this seed alone")
    parser.addoption("--seeds", default="60", help="how many seeds to run")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--seed")
    seeds = int(metafunc.config.getoption("--seeds"))
    for fixture, divisor in SEEDS_PER_RUN.items():
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, [int(chosen)] if chosen else list(range(max(1, seeds // divisor))))
