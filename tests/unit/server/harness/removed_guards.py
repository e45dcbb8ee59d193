"""A function without one of its lines: what a test of a guard has to notice."""

from __future__ import annotations
import __future__

import inspect
import textwrap
from types import FunctionType
from typing import Any

import pytest


def without_guard(patch: pytest.MonkeyPatch, owner: Any, name: str, guard: str, instead: str) -> None:
    """Replace one piece of the source of ``owner.name``, which must be there exactly once."""
    original = inspect.getattr_static(owner, name)
    function = original.__func__ if isinstance(original, staticmethod | classmethod) else original
    assert isinstance(function, FunctionType)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(guard) == 1, f"{guard!r} is not in {function.__qualname__} once"
    made: dict[str, Any] = {}
    code = compile(
        source.replace(guard, instead), "<without a guard>", "exec", __future__.annotations.compiler_flag, True
    )
    exec(code, function.__globals__, made)  # with its own globals, so that what it calls can be replaced too
    (changed,) = (each for each in made.values() if isinstance(each, FunctionType | staticmethod | classmethod))
    patch.setattr(owner, name, changed)
