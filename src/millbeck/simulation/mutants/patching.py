"""Replaces functions temporarily. Compiled classes cannot be patched: run the Python files (``MILLBECK_PURE=1``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Patch:
    """Keeps the replaced functions, to restore them."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> Any:
        """Replace an attribute; returns the original."""
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
