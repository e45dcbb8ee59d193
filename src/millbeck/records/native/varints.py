"""Zigzag varints of the native modules.

The encoding is the magnitude doubled, plus one when negative. The magnitude is ``value``, or ``~value`` when it is
negative, which always fits in 63 bits. All arithmetic is on the magnitude, so that compiled (64-bit) and interpreted
(unbounded) code agree. The loops over records decode numbers of one and two bytes inline, since a call for each would
be most of their cost, and call these functions for longer ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

VARINT_SIZE_MAX: Final = 5
VARLONG_SIZE_MAX: Final = 10
NO_NUMBER: Final = -1
"""The end position returned for a number that is missing, malformed or too long."""

_INT64_MAX: Final = 0x7FFFFFFFFFFFFFFF
_UINT32_MAX: Final = 0xFFFFFFFF

_ONE_BYTE: Final = [bytes((value,)) for value in range(0x80)]

SHORT_END: Final = 0x800
SHORT: Final = [
    bytes((number << 1,)) if number < 0x40 else bytes((number << 1 & 0x7F | 0x80, number >> 6))
    for number in range(SHORT_END)
]
"""The encoded numbers from 0, which most offset deltas and lengths are, without a call for each."""


def encode(value: i64) -> bytes:
    """The shortest zigzag varint of a signed 64-bit number."""
    sign: i64 = 0
    if value < 0:
        sign = 1
        value = ~value
    low: i64 = ((value & 0x3F) << 1) | sign
    rest: i64 = value >> 6
    if rest == 0:
        return _ONE_BYTE[low]
    packed: int
    if rest < 0x80:
        packed = low | 0x80 | rest << 8
        return packed.to_bytes(2, "little")
    if rest < 0x4000:
        packed = low | 0x80 | (rest & 0x7F | 0x80) << 8 | (rest >> 7) << 16
        return packed.to_bytes(3, "little")
    encoded = []
    while rest != 0:
        encoded.append(low | 0x80)
        low = rest & 0x7F
        rest >>= 7
    encoded.append(low)
    return bytes(encoded)


def size_of(value: i64) -> i64:
    """The size in bytes of ``encode(value)``."""
    if value < 0:
        value = ~value
    rest: i64 = value >> 6
    size: i64 = 1
    while rest != 0:
        rest >>= 7
        size += 1
    return size


def read_varint(payload: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Decode a 32-bit zigzag varint; returns it and its end, which is `NO_NUMBER` for a malformed or truncated one."""
    raw: i64 = 0
    shift: i64 = 0
    while position < end and shift < 35:
        byte: i64 = payload[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw > _UINT32_MAX:
                return 0, NO_NUMBER
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, NO_NUMBER


def read_varlong(payload: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Decode a 64-bit zigzag varint; returns it and its end, which is `NO_NUMBER` for a malformed or truncated one."""
    raw: i64 = 0
    shift: i64 = 0
    while position < end and shift < 70:
        byte: i64 = payload[position]
        position += 1
        if shift == 63 and byte > 1:
            return 0, NO_NUMBER
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            # Compiled, the 64th bit makes ``raw`` negative and the right shift keeps the sign; the mask removes it.
            return ((raw >> 1) & _INT64_MAX) ^ -(raw & 1), position
        shift += 7
    return 0, NO_NUMBER
