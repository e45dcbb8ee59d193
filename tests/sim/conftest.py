"""``--seed`` chooses one run: ``make sim SEED=17``. ``--seeds`` says how many are run without it."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", default="", help="run this seed alone")
    parser.addoption("--seeds", default="60", help="how many seeds to run")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--seed")
        seeds = [int(chosen)] if chosen else list(range(int(metafunc.config.getoption("--seeds"))))
        metafunc.parametrize("seed", seeds)
    if "group_seed" in metafunc.fixturenames:
        # Three nodes take longer, and the mutants run some of these too.
        chosen = metafunc.config.getoption("--seed")
        count = max(1, int(metafunc.config.getoption("--seeds")) // 15)
        metafunc.parametrize("group_seed", [int(chosen)] if chosen else list(range(count)))
    if "share_seed" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--seed")
        count = max(1, int(metafunc.config.getoption("--seeds")) // 30)
        metafunc.parametrize("share_seed", [int(chosen)] if chosen else list(range(count)))
    if "registry_seed" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--seed")
        count = max(1, int(metafunc.config.getoption("--seeds")) // 6)
        metafunc.parametrize("registry_seed", [int(chosen)] if chosen else list(range(count)))
    if "table_seed" in metafunc.fixturenames:
        # Longer runs, of which fewer fit the time of the tests.
        chosen = metafunc.config.getoption("--seed")
        count = max(1, int(metafunc.config.getoption("--seeds")) // 4)
        metafunc.parametrize("table_seed", [int(chosen)] if chosen else list(range(count)))
    if "isolation_seed" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--seed")
        count = max(1, int(metafunc.config.getoption("--seeds")) // 30)
        metafunc.parametrize("isolation_seed", [int(chosen)] if chosen else list(range(count)))
    if "damage_seed" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--seed")
        count = max(1, int(metafunc.config.getoption("--seeds")) // 10)
        metafunc.parametrize("damage_seed", [int(chosen)] if chosen else list(range(count)))
