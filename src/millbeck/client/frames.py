"""Cuts a stream of received bytes into frames. Pure: bytes in, frames out."""

from __future__ import annotations

from struct import Struct
from typing import Final

from millbeck.wire.errors import DecodeError

_LENGTH: Final = Struct(">i")
_LENGTH_SIZE: Final = 4


class FrameReader:
    """Keeps what has arrived of a frame until the rest comes; what it keeps is bounded by ``frame_size_max``.

    A large frame arrives in many pieces: they are gathered in a list and joined once.
    """

    __slots__ = ("_frame_size_max", "_missing", "_pieces")

    def __init__(self, frame_size_max: int) -> None:
        self._frame_size_max = frame_size_max
        self._pieces: list[bytes] = []
        self._missing = 0
        """How many bytes are still to come before the pieces are worth joining."""

    @property
    def has_partial_frame(self) -> bool:
        return bool(self._pieces)

    def receive(self, data: bytes) -> list[bytes]:
        """The frames that ``data`` completes, without their lengths; raises `DecodeError` for an impossible length."""
        if self._pieces:
            self._pieces.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return []
            data = b"".join(self._pieces)
            self._pieces.clear()
        frames = []
        start, stop = 0, len(data)
        while stop - start >= _LENGTH_SIZE:
            size: int = _LENGTH.unpack_from(data, start)[0]
            if not 0 <= size <= self._frame_size_max:
                raise DecodeError(f"frame of {size} bytes, at most {self._frame_size_max} are allowed")
            end = start + _LENGTH_SIZE + size
            if end > stop:
                break
            frames.append(data[start + _LENGTH_SIZE : end])
            start = end
        if start < stop:
            self._keep(data[start:] if start else data)
        return frames

    def _keep(self, rest: bytes) -> None:
        self._pieces.append(rest)
        if len(rest) < _LENGTH_SIZE:
            self._missing = _LENGTH_SIZE - len(rest)
        else:
            self._missing = _LENGTH_SIZE + _LENGTH.unpack_from(rest)[0] - len(rest)
