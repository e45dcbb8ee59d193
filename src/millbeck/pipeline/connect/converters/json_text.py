"""JSON as Jackson reads and writes it, for the bytes of JsonConverter.

Numbers with a fraction are read as decimals, so that nothing is lost; zeros before a number are allowed, and whatever
follows the first value is ignored. Floats are written as Java prints them.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from decimal import Decimal
from typing import Any, Final

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.numbers import float_text

_ESCAPED: Final = re.compile(r'["\\\x00-\x1f\U00010000-\U0010ffff]')
_SHORT_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_LEADING_ZEROS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\w.+-])(-?)0+(?=[0-9])')
_SPACES: Final = " \t\n\r"
_BLANKS: Final = re.compile(r"[\x00-\x20]+")
_DIGITS_MAX: Final = 1000

MISSING: Final = object()
"""What nothing at all is read as: no JSON value, not even null."""


def _whole_number(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise ValueError(f"a number of more than {_DIGITS_MAX} digits")
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > _DIGITS_MAX:
        raise ValueError(f"a number of more than {_DIGITS_MAX} digits")
    return Decimal(text)


def _refused_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number of JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_whole_number, parse_float=_decimal, parse_constant=_refused_constant)


def parsed_json(stored: bytes) -> Any:
    """The first JSON value in these bytes; `MISSING` when there is none. Raises `InvalidValue`."""
    try:
        text = stored.decode(json.detect_encoding(stored)).lstrip(_SPACES)
        if not text and not stored.strip():
            return MISSING
        try:
            value, end = _DECODER.raw_decode(text)
            if text[end - 1] != "0" or not text[end : end + 1].isdigit():
                return value
        except ValueError:
            pass
        value, _ = _DECODER.raw_decode(_LEADING_ZEROS.sub(lambda match: match[1] or match[2], text))
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidValue(
            f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}"
        ) from None
    return value


def parsed_member(stored: bytes, start: int) -> Any:
    """The value of an object's last member, which begins at ``start``; `MISSING` if it is not JSON or not the last."""
    try:
        text = stored[start:].decode()
        value, end = _DECODER.raw_decode(text.lstrip(_SPACES))
    except (ValueError, ArithmeticError, RecursionError):
        return MISSING
    rest = text.lstrip(_SPACES)[end:].lstrip(_SPACES)
    return value if rest[:1] == "}" else MISSING


def json_text(value: Any) -> str:
    """The JSON of dicts, lists, texts, booleans, numbers, Decimals and null; bytes are in base64."""
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: Any, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(quoted(value))
    elif value is None:
        parts.append("null")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    elif isinstance(value, float):
        text = float_text(value)
        parts.append(text if text[-1].isdigit() else f'"{text}"')
    elif isinstance(value, (int, Decimal)):
        parts.append(str(value))
    elif isinstance(value, bytes):
        parts.append(f'"{base64.b64encode(value).decode()}"')
    elif isinstance(value, dict):
        separator = "{"
        for name, each in value.items():
            parts.append(f"{separator}{quoted(name)}:")
            _write(each, parts)
            separator = ","
        parts.append("}" if value else "{}")
    else:
        separator = "["
        for each in value:
            parts.append(separator)
            _write(each, parts)
            separator = ","
        parts.append("]" if value else "[]")


def quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    short = _SHORT_ESCAPES.get(match[0])
    if short is not None:
        return short
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04X}"
    # Jackson writes what UTF-16 has two halves for as the two of them.
    return f"\\u{0xD7C0 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"


def bytes_of_base64(text: str) -> bytes:
    """Raises ValueError."""
    try:
        return base64.b64decode(_BLANKS.sub("", text), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
