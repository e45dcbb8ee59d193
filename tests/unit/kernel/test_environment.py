"""The parts of the environment that are more than protocols."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import cast

import pytest

from millbeck.kernel.environment import BoundListener, File, FileSlice, OpenMode


def test_a_slice_is_small_and_calls_its_release() -> None:
    released = []
    part = FileSlice(cast(File, object()), 5, 10, lambda: released.append("once"))
    assert (part.position, part.size) == (5, 10)
    assert not hasattr(part, "__dict__")
    part.release()
    assert released == ["once"]


def test_values_do_not_change() -> None:
    listening = BoundListener(port=9092, close=lambda: None, pause=lambda: None, resume=lambda: None)
    with pytest.raises(FrozenInstanceError):
        listening.port = 1  # type: ignore[misc]


def test_modes() -> None:
    assert [mode.name for mode in OpenMode] == ["READ", "WRITE", "WRITE_PRIVATE"]
