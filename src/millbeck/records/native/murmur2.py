"""Murmur2, the hash that Kafka's clients use for the partition of a record with a key.

32-bit arithmetic with the seed of the Java client. Every product is masked to 32 bits at once, and both factors are
below 2^32, so the compiled 64-bit product may overflow without changing the bits that are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """The hash of ``key`` as a signed 32-bit number."""
    size: i64 = len(key)
    value: i64 = (_SEED ^ size) & _MASK
    position: i64 = 0
    word: i64
    byte: i64
    while position + 4 <= size:
        word = key[position]
        byte = key[position + 1]
        word |= byte << 8
        byte = key[position + 2]
        word |= byte << 16
        byte = key[position + 3]
        word |= byte << 24
        word = (word * _FACTOR) & _MASK
        word ^= word >> 24
        word = (word * _FACTOR) & _MASK
        value = ((value * _FACTOR) & _MASK) ^ word
        position += 4
    tail: i64 = size - position
    if tail == 3:
        byte = key[position + 2]
        value ^= byte << 16
    if tail >= 2:
        byte = key[position + 1]
        value ^= byte << 8
    if tail >= 1:
        byte = key[position]
        value = ((value ^ byte) * _FACTOR) & _MASK
    value ^= value >> 13
    value = (value * _FACTOR) & _MASK
    value ^= value >> 15
    return value - 0x100000000 if value > 0x7FFFFFFF else value
