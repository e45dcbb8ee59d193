"""A slice is what it was made of; whoever carries it calls its release."""

from __future__ import annotations

from typing import Any, cast

from millbeck.kernel import environment
from millbeck.kernel.file_slice import FileSlice


def test_a_slice_keeps_its_range_and_is_released_by_its_holder() -> None:
    released: list[int] = []
    file = cast(Any, object())
    piece = FileSlice(file, 10, 20, lambda: released.append(1))
    assert (piece.file, piece.position, piece.size) == (file, 10, 20)
    piece.release()
    assert released == [1]


def test_it_is_part_of_the_environments_vocabulary() -> None:
    assert environment.FileSlice is FileSlice
