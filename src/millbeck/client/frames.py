"""Cuts a stream of received bytes into frames. Pure: bytes in, frames out."""

from __future__ import annotations

from struct import Struct
from typing import Final

from millbeck.wire.errors import DecodeError

_LENGTH: Final = Struct(">i")
_LENGTH_SIZE: Final = 4
_UNKNOWN: Final = -1


class FrameReader:
    """Keeps what has arrived of a frame until the rest comes; what it keeps is bounded by ``frame_size_max``.

    A large frame arrives in many pieces: they are gathered in a list without the length, and joined once.
    """

    __slots__ = ("_frame_size_max", "_missing", "_pieces")

    def __init__(self, frame_size_max: int) -> None:
        self._frame_size_max = frame_size_max
        self._pieces: list[bytes | memoryview] = []
        self._missing = _UNKNOWN
        """How many bytes of the frame are still to come, once its length has."""

    @property
    def has_partial_frame(self) -> bool:
        return bool(self._pieces)

    def receive(self, data: bytes) -> list[bytes]:
        """The frames that ``data`` completes, without their lengths; raises `DecodeError` for an impossible length."""
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
                raise DecodeError(f"frame of {size} bytes, at most {self._frame_size_max} are allowed")
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
