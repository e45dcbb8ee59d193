"""The types of option values: conversion from text and back, as in Kafka's configuration files.

Text is trimmed first. Numbers are plain decimal (no underscores, no hexadecimal) and must fit their Java type; a
boolean is ``true`` or ``false`` in any case; the entries of a list are separated by commas, spaces around them
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_COMMA = re.compile(r"\s*,\s*")
_DIGITS_MAX = 20  # one more than a Java long can need; keeps int() away from megabytes of digits
_DECIMAL_MAX = 64


HIDDEN: Final = "[hidden]"


class Secret:
    """A password: it is never shown in logs, responses or tracebacks; only `reveal` returns its text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return HIDDEN


class ProvidedText(str):
    """The text of a setting with a value from a config provider. It is never shown in responses and messages, whatever
    the setting is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


class OptionKind(Generic[T]):
    """A type of option values. ``code`` is its number in DescribeConfigs."""

    __slots__ = ("code", "name", "parse", "text")

    def __init__(self, name: str, code: int, parse: Callable[[str], T], text: Callable[[T], str]) -> None:
        self.name = name
        self.code = code
        self.parse = parse
        """Converts a text to a value; its ValueError has the expected form."""
        self.text = text

    def __repr__(self) -> str:
        return self.name


def _parse_boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("expected true or false")
    return word == "true"


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


def _integer_parser(bits: int) -> Callable[[str], int]:
    smallest, largest = -(1 << bits - 1), (1 << bits - 1) - 1

    def parse(text: str) -> int:
        digits = text.strip()
        if len(digits) <= _DIGITS_MAX and _INTEGER.fullmatch(digits):
            value = int(digits)
            if smallest <= value <= largest:
                return value
        raise ValueError(f"expected a whole number of {bits} bits")

    return parse


def _parse_double(text: str) -> float:
    digits = text.strip()
    if len(digits) > _DECIMAL_MAX or not _DECIMAL.fullmatch(digits):
        raise ValueError("expected a decimal number")
    return float(digits)


def _double_text(value: float) -> str:
    """The text of a double as in Java: plain between 0.001 and ten million, otherwise with an exponent
    (``1.0E10``).
    """
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    # repr has the shortest digits that convert back to the same value; only the point and the exponent are moved.
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = repr(abs(float(value))).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    leading_zeros = len(digits) - len(digits.lstrip("0"))
    exponent = int(exponent_text or 0) + len(whole) - 1 - leading_zeros
    digits = digits.strip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _parse_list(text: str) -> tuple[str, ...]:
    trimmed = text.strip()
    return tuple(_COMMA.split(trimmed)) if trimmed else ()


BOOLEAN: OptionKind[bool] = OptionKind("boolean", 1, _parse_boolean, _boolean_text)
STRING: OptionKind[str] = OptionKind("string", 2, str.strip, str)
INT: OptionKind[int] = OptionKind("int", 3, _integer_parser(32), str)
SHORT: OptionKind[int] = OptionKind("short", 4, _integer_parser(16), str)
LONG: OptionKind[int] = OptionKind("long", 5, _integer_parser(64), str)
DOUBLE: OptionKind[float] = OptionKind("double", 6, _parse_double, _double_text)
LIST: OptionKind[tuple[str, ...]] = OptionKind("list", 7, _parse_list, ",".join)
CLASS: OptionKind[str] = OptionKind("class", 8, str.strip, str)
PASSWORD: OptionKind[Secret] = OptionKind("password", 9, lambda text: Secret(text.strip()), repr)
