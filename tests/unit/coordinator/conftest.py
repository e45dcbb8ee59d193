"""The in-memory world around a group shard, as fixtures."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _load(path: Path) -> ModuleType:
    spec = spec_from_file_location("coordinator_world", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WORLD = _load(Path(__file__).with_name("world.py"))


@pytest.fixture
def worlds() -> ModuleType:
    """The module: `World`, `Log`, `Scheduler`, `Outcome`, `subscription`."""
    return WORLD


@pytest.fixture
def world() -> Any:
    return WORLD.World()
