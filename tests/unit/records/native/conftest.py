"""The kernels, twice: the modules in use, and the Python files behind them where those in use are compiled."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import pytest

from millbeck.records import native as package

IN_USE = SimpleNamespace(**{name: import_module(f"{package.__name__}.{name}") for name in package.MODULES})
PURE = SimpleNamespace(**package.load_pure("pure_kernels")) if package.COMPILED else IN_USE


@pytest.fixture(params=["in use", "pure"] if package.COMPILED else ["in use"])
def kernels(request: pytest.FixtureRequest) -> SimpleNamespace:
    return IN_USE if request.param == "in use" else PURE


@pytest.fixture
def both_kernels() -> tuple[SimpleNamespace, SimpleNamespace]:
    """What is in use and its Python files; a comparison of the two proves nothing where they are the same."""
    if not package.COMPILED:
        pytest.skip("the kernels are not compiled")
    return IN_USE, PURE
