"""A stage for each test."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _load() -> ModuleType:
    spec = spec_from_file_location("transaction_stage", Path(__file__).with_name("stage.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


STAGE = _load()


@pytest.fixture
def stage(worlds: ModuleType) -> Any:
    return STAGE.Stage(worlds)


@pytest.fixture
def older_stage(worlds: ModuleType) -> Any:
    """Where transactions are of version 0."""
    return STAGE.Stage(worlds, version=0)
