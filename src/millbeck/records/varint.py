"""Zigzag varints as used in records; `wire` has its own unsigned ones.

The native modules have their own copies of these loops (a call per number would be most of their cost). This module is
for all code that is not hot, and the tests of the native modules compare with it.
"""

from __future__ import annotations

from millbeck.kernel.errors import InvalidRecord
from millbeck.records.native.varints import VARINT_SIZE_MAX, VARLONG_SIZE_MAX, encode, size_of

__all__ = ["VARINT_SIZE_MAX", "VARLONG_SIZE_MAX", "encode", "read_varint", "read_varlong", "size_of"]


def read_varint(buffer: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """The signed 32-bit number at ``position`` and its end. Raises `InvalidRecord` when truncated or too large."""
    return _read(buffer, position, VARINT_SIZE_MAX, 0xFFFFFFFF)


def read_varlong(buffer: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """The signed 64-bit number at ``position`` and its end. Raises `InvalidRecord` when truncated or too large."""
    return _read(buffer, position, VARLONG_SIZE_MAX, 0xFFFFFFFFFFFFFFFF)


def _read(buffer: bytes | bytearray | memoryview, position: int, size_max: int, raw_max: int) -> tuple[int, int]:
    raw = 0
    shift = 0
    for index in range(position, min(position + size_max, len(buffer))):
        byte = buffer[index]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw > raw_max:
                break
            return (raw >> 1) ^ -(raw & 1), index + 1
        shift += 7
    raise InvalidRecord(f"no valid varint at byte {position}")
