"""Java's regular expressions and replacement texts, by Python's ``re``.

Most expressions mean the same in both. What differs is rewritten (named groups, ``\\p{Alpha}``, ``\\h``, ``\\z``,
quotations), and what Python cannot say is refused by name. As in Java, ``\\d`` and ``\\w`` are ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_LENGTH_MAX: Final = 10_000
_CLASSES: Final[Mapping[str, str]] = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "A-Za-z0-9",
    "Punct": "!-/:-@\\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9A-Fa-f",
    "Space": " \\t\\n\\x0b\\f\\r",
}
_LETTERS: Final[Mapping[str, str]] = {
    "h": " \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000",
    "v": "\\n\\x0b\\f\\r\\x85\\u2028\\u2029",
}
_REFUSED: Final = "RXGNbkK"
"""Escapes of Java whose meaning differs or is missing; ``\\b`` and ``\\k`` are handled before."""


class PatternError(ValueError):
    """Not a regular expression of Java's, or one that has no counterpart here."""


def compiled(pattern: str) -> re.Pattern[str]:
    """The expression for Python. Raises `PatternError`."""
    if len(pattern) > _LENGTH_MAX:
        raise PatternError(f"longer than {_LENGTH_MAX} characters")
    try:
        return re.compile(_Rewriter(pattern).rewritten(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(str(error)) from None


class _Rewriter:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._class_depth = 0

    def rewritten(self) -> str:
        parts: list[str] = []
        while self._place < len(self._pattern):
            parts.append(self._piece())
        return "".join(parts)

    def _piece(self) -> str:
        character = self._pattern[self._place]
        if character == "\\":
            return self._escape()
        if self._class_depth == 0 and self._pattern.startswith("(?<", self._place):
            following = self._pattern[self._place + 3 : self._place + 4]
            if following not in ("=", "!"):
                self._place += 3
                return "(?P<"
        if character == "[":
            if self._class_depth:
                raise PatternError(f"a class inside a class near index {self._place} is not supported")
            self._class_depth = 1
            self._place += 1
            start = "["
            if self._pattern.startswith("^", self._place):
                start, self._place = "[^", self._place + 1
            if self._pattern.startswith("]", self._place):
                # The first one does not end the class.
                start, self._place = f"{start}\\]", self._place + 1
            return start
        if self._class_depth:
            if self._pattern.startswith("&&", self._place):
                raise PatternError(f"an intersection (&&) near index {self._place} is not supported")
            self._class_depth -= character == "]"
            # Python keeps doubled characters in classes for later versions, and warns of them.
            is_doubled = character == "-" and self._pattern[self._place - 1] == "-"
            if character in "|~&" or is_doubled:
                character = f"\\{character}"
        self._place += 1
        return character

    def _escape(self) -> str:
        letter = self._pattern[self._place + 1 : self._place + 2]
        self._place += 2
        if not letter:
            raise PatternError("Unexpected internal error: a backslash at the end")
        if letter == "Q":
            end = self._pattern.find("\\E", self._place)
            end = len(self._pattern) if end < 0 else end
            quoted = self._pattern[self._place : end]
            self._place = end + 2
            return re.escape(quoted)
        if letter in "pP":
            return self._property(negated=letter == "P")
        if letter.lower() in _LETTERS:
            return self._one_of(_LETTERS[letter.lower()], negated=letter.isupper())
        if letter == "z":
            return "\\Z"
        if letter == "Z":
            return "(?=\\n?\\Z)"
        if letter == "e":
            return "\\x1b"
        if letter == "k" and self._pattern.startswith("<", self._place):
            end = self._pattern.find(">", self._place)
            name = self._pattern[self._place + 1 : end]
            self._place = end + 1
            return f"(?P={name})"
        if letter == "b" and self._class_depth == 0:
            return "\\b"
        if letter in _REFUSED:
            raise PatternError(f"\\{letter} near index {self._place - 2} is not supported")
        return "\\" + letter

    def _property(self, *, negated: bool) -> str:
        name = self._pattern[self._place : self._place + 1]
        end = self._place
        if name == "{":
            end = self._pattern.find("}", self._place)
            name = self._pattern[self._place + 1 : end] if end > 0 else ""
        if name not in _CLASSES:
            raise PatternError(f"the property {name or '?'} near index {self._place} is not supported")
        self._place = end + 1
        return self._one_of(_CLASSES[name], negated=negated)

    def _one_of(self, members: str, *, negated: bool) -> str:
        if not self._class_depth:
            return f"[{'^' if negated else ''}{members}]"
        if negated:
            raise PatternError(f"a negation inside a class near index {self._place} is not supported")
        return members


def replaced_first(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    """``Matcher.replaceFirst``: ``$1`` and ``${name}`` are groups, a backslash quotes. Raises `PatternError`."""
    match = pattern.search(text)
    if match is None:
        return text
    return text[: match.start()] + _expanded(match, replacement) + text[match.end() :]


def _expanded(match: re.Match[str], replacement: str) -> str:
    parts: list[str] = []
    place = 0
    while place < len(replacement):
        character = replacement[place]
        place += 1
        if character == "\\":
            if place == len(replacement):
                raise PatternError("character to be escaped is missing")
            parts.append(replacement[place])
            place += 1
        elif character == "$":
            found, place = _group(match, replacement, place)
            parts.append(found)
        else:
            parts.append(character)
    return "".join(parts)


def _group(match: re.Match[str], replacement: str, place: int) -> tuple[str, int]:
    """The group that a dollar sign before ``place`` refers to, and the place behind it. A number takes as many digits
    as there are groups for.
    """
    if replacement.startswith("{", place):
        end = replacement.find("}", place)
        if end < 0:
            raise PatternError("named capturing group is missing trailing '}'")
        name = replacement[place + 1 : end]
        if name not in match.re.groupindex:
            raise PatternError(f"No group with name {{{name}}}")
        return match[name] or "", end + 1
    if not "0" <= replacement[place : place + 1] <= "9":
        raise PatternError("Illegal group reference")
    number = int(replacement[place])
    if number > match.re.groups:
        raise PatternError(f"No group {number}")
    place += 1
    while "0" <= replacement[place : place + 1] <= "9" and number * 10 + int(replacement[place]) <= match.re.groups:
        number = number * 10 + int(replacement[place])
        place += 1
    return match[number] or "", place
