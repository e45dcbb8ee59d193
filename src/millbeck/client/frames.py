"""Split received bytes into length-prefixed frames. Pure: bytes in, frames out."""

from __future__ import annotations

from struct import Struct
from typing import Final

from millbeck.wire.errors import DecodeError

_LENGTH: Final = Struct(">i")
_LENGTH_SIZE: Final = 4
_UNKNOWN: Final = -1


class FrameReader:
    """Buffers an incomplete frame until the rest arrives; the buffer is bounded by ``frame_size_max``.

    A large frame arrives in many pieces: they are collected in a list and joined once.
    """

    __slots__ = ("_frame_size_max", "_missing", "_pieces")

    def __init__(self, frame_size_max: int) -> None:
        self._frame_size_max = frame_size_max
        self._pieces: list[bytes | memoryview] = []
        self._missing = _UNKNOWN
        """The number of missing bytes of the frame, once its length is known."""

    def receive(self, data: bytes) -> list[bytes]:
        """The frames completed by ``data``, without length prefix; raises `DecodeError` for an invalid length."""
        frames: list[bytes] = []
        start = 0
        if self._pieces:
            if self._missing == _UNKNOWN:
                data = b"".join([*self._pieces, data])
                self._pieces.clear()
            elif len(data) < self._missing:
                self._pieces.append(data)
                self._missing -= len(data)
                return frames
            else:
                start = self._missing
                self._pieces.append(data if start == len(data) else memoryview(data)[:start])
                frames.append(b"".join(self._pieces))
                self._pieces.clear()
        stop = len(data)
        while stop - start >= _LENGTH_SIZE:
            size: int = _LENGTH.unpack_from(data, start)[0]
            if not 0 <= size <= self._frame_size_max:
                raise DecodeError(f"frame of {size} bytes exceeds the limit of {self._frame_size_max}")
            end = start + _LENGTH_SIZE + size
            if end > stop:
                self._pieces.append(data[start + _LENGTH_SIZE :])
                self._missing = end - stop
                return frames
            frames.append(data[start + _LENGTH_SIZE : end])
            start = end
        if start < stop:
            self._pieces.append(data[start:])
            self._missing = _UNKNOWN
        return frames
