"""The texts of arrays and of hstore, which hold other texts."""

from __future__ import annotations

import re
from typing import Any, Final

DIMENSIONS_MAX: Final = 6
"""PostgreSQL's own limit."""

_BOUNDS: Final = re.compile(r"(\[[-+]?\d+:[-+]?\d+\])+=")
_SPECIAL: Final = re.compile(r"[{}\"\\]")
_PLAIN: Final = re.compile(r"[^,{}\"\\]+")
_HSTORE_PAIR: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)(?:, |$)', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def array_of(text: str) -> list[Any]:
    """The elements of an array as texts, None for NULL; those of more dimensions are lists. Raises ValueError."""
    bounds = _BOUNDS.match(text)
    start = bounds.end() if bounds else 0
    if text[start : start + 1] != "{" or not text.endswith("}"):
        raise ValueError("not the text of an array")
    body = text[start + 1 : -1]
    if not body:
        return []
    if not _SPECIAL.search(body):
        return [None if part == "NULL" else part for part in body.split(",")]
    found, end = _elements(text, start + 1, 1)
    if end != len(text):
        raise ValueError("not the text of an array")
    return found


def _elements(text: str, position: int, depth: int) -> tuple[list[Any], int]:
    if depth > DIMENSIONS_MAX:
        raise ValueError(f"an array of more than {DIMENSIONS_MAX} dimensions")
    found: list[Any] = []
    while position < len(text):
        character = text[position]
        if character == "{":
            inner, position = _elements(text, position + 1, depth + 1)
            found.append(inner)
        elif character == '"':
            quoted, position = _quoted(text, position + 1)
            found.append(quoted)
        elif character != "}":
            plain = _PLAIN.match(text, position)
            if plain is None:
                raise ValueError("not the text of an array")
            position = plain.end()
            found.append(None if plain[0] == "NULL" else plain[0])
        mark, position = text[position : position + 1], position + 1
        if mark == "}":
            return found, position
        if mark != ",":
            break
    raise ValueError("not the text of an array")


def _quoted(text: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    while True:
        end = position
        while end < len(text) and text[end] not in '"\\':
            end += 1
        if end >= len(text):
            raise ValueError("not the text of an array")
        parts.append(text[position:end])
        if text[end] == '"':
            return "".join(parts), end + 1
        parts.append(text[end + 1 : end + 2])
        position = end + 2


def hstore_of(text: str) -> dict[str, str | None]:
    """Raises ValueError."""
    found: dict[str, str | None] = {}
    position = 0
    while position < len(text):
        pair = _HSTORE_PAIR.match(text, position)
        if pair is None:
            raise ValueError("not the text of an hstore")
        value = pair[2]
        found[_ESCAPE.sub(r"\1", pair[1])] = None if value is None else _ESCAPE.sub(r"\1", value)
        position = pair.end()
    return found
