"""Subclasses of ``int`` and ``float`` that carry the width of a Connect type, for values without a schema.

A plain ``int`` is an INT64 and a plain ``float`` a FLOAT64; INT8, INT16, INT32 and FLOAT32 are subclasses. They
compare and compute like plain numbers; the result of arithmetic is a plain number.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Final

from millbeck.kernel.option_kinds import DOUBLE

_FLOAT32: Final = struct.Struct(">f")
_FLOAT32_DIGITS_MAX: Final = 9
_WIDEST_EXPONENT: Final = 400
"""Decimals beyond ten to this power are infinite as floats, and have no low bits as integers."""


class Int8(int):
    """A whole number of 8 bits."""

    __slots__ = ()


class Int16(int):
    """A whole number of 16 bits."""

    __slots__ = ()


class Int32(int):
    """A whole number of 32 bits."""

    __slots__ = ()


class Float32(float):
    """A floating-point number of 32 bits; the value is rounded to one."""

    __slots__ = ()

    def __new__(cls, value: float) -> Float32:
        return super().__new__(cls, rounded_to_float32(value))


def rounded_to_float32(value: float) -> float:
    """The nearest number that 32 bits can hold; infinite beyond the largest."""
    try:
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def wrapped(value: int, bits: int) -> int:
    """The low bits as a signed number: Java's narrowing cast."""
    low = value & (1 << bits) - 1
    return low - (1 << bits) if low >> (bits - 1) else low


def fits(value: int, bits: int) -> bool:
    return -(1 << bits - 1) <= value < 1 << bits - 1


def whole_part(value: float | Decimal, bits: int) -> int:
    """A number without its fraction, as Java's ``intValue`` and ``longValue``: floats are limited to the range,
    decimals lose their high bits.
    """
    if isinstance(value, Decimal):
        return 0 if value.adjusted() > _WIDEST_EXPONENT else wrapped(int(value), bits)
    if math.isnan(value):
        return 0
    largest = (1 << bits - 1) - 1
    if value >= largest:
        return largest
    return max(int(value), -largest - 1) if value > -largest - 1 else -largest - 1


def float_of(value: Decimal) -> float:
    """The nearest double; infinite beyond the largest."""
    if value.adjusted() > _WIDEST_EXPONENT:
        return math.copysign(math.inf, value)
    return float(value)


def float_text(value: float) -> str:
    """A number as Java prints it: ``1.0E10``, ``NaN``; the shortest digits that make a Float32 again if it is one."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Float32):
        for digits in range(1, _FLOAT32_DIGITS_MAX + 1):
            short = float(f"{value:.{digits}g}")
            if rounded_to_float32(short) == value:
                return DOUBLE.text(short)
    return DOUBLE.text(float(value))
