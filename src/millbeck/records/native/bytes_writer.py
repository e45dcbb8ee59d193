"""A Python replacement of librt's growing buffer, for installations without librt."""

from __future__ import annotations

from struct import Struct
from typing import Final

_I64: Final = Struct("<q")


class BytesWriter:
    def __init__(self) -> None:
        self._data = bytearray()

    def append(self, byte: int) -> None:
        self._data.append(byte)

    def write(self, data: bytes) -> None:
        self._data += data

    def getvalue(self) -> bytes:
        return bytes(self._data)

    def __len__(self) -> int:
        return len(self._data)


def write_i64_le(writer: BytesWriter, number: int) -> None:
    writer.write(_I64.pack(number))


def read_i64_le(data: bytes, position: int) -> int:
    if position < 0:
        raise IndexError(position)
    number: int = _I64.unpack_from(data, position)[0]
    return number
