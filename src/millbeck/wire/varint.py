"""Unsigned varints, used in flexible messages for lengths, counts and tags: 7 bits per byte, lowest first.

Log records use zigzag varints instead; those are in the records package.
"""

from __future__ import annotations

from typing import Final

from millbeck.wire.errors import DecodeError

_SIZE_MAX: Final = 5


def _encode(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


SMALL: Final[tuple[bytes, ...]] = tuple(_encode(value) for value in range(1024))
"""The encodings of 0 to 1023, so that common lengths need only a lookup."""


def unsigned_varint(value: int) -> bytes:
    """Encode ``value`` (0 to 2**32 - 1) in one to five bytes."""
    if 0 <= value < 1024:
        return SMALL[value]
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} is not an unsigned 32-bit integer")
    return _encode(value)


def read_unsigned_varint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Decode a varint; return the value and the position after it. Raises DecodeError if cut off or longer than five
    bytes."""
    try:
        first = buffer[position]
        if first < 0x80:
            return first, position + 1
        return continue_varint(buffer, position + 1, first)
    except IndexError:
        raise DecodeError(f"varint cut off at byte {position}") from None


def continue_varint(buffer: bytes | memoryview, position: int, first: int) -> tuple[int, int]:
    """Decode the rest of a varint whose first byte was ``first``; raises IndexError if cut off."""
    byte = buffer[position]
    position += 1
    value = first & 0x7F | (byte & 0x7F) << 7
    if byte < 0x80:
        return value, position
    for shift in range(14, 7 * _SIZE_MAX, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise DecodeError(f"varint longer than {_SIZE_MAX} bytes at byte {position}")
