"""Replaces functions for a while. Compiled classes keep theirs: run on the Python files (``MILLBECK_PURE=1``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Patch:
    """Remembers what it has replaced."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> Any:
        """Returns what was there."""
        before = owner.__dict__[name]
        self._before.append((owner, name, before))
        setattr(owner, name, value)
        return before

    def undo(self) -> None:
        while self._before:
            owner, name, value = self._before.pop()
            setattr(owner, name, value)


@contextmanager
def patched() -> Iterator[Patch]:
    patch = Patch()
    try:
        yield patch
    finally:
        patch.undo()
