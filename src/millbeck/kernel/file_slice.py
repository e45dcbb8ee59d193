"""A range of an open file to be sent: part of a response in place of the bytes themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millbeck.kernel.environment import File


class FileSlice:
    """A range of a leased file to be sent. ``release`` is called exactly once, sent or not."""

    __slots__ = ("file", "position", "release", "size")

    def __init__(self, file: File, position: int, size: int, release: Callable[[], None]) -> None:
        self.file = file
        self.position = position
        self.size = size
        self.release = release
