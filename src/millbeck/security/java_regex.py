"""Patterns and replacements in Java's syntax, as in the rules that map names to principals.

They come from the operator's own file, so Python's ``re`` is safe enough; its syntax differs from Java's only in rare
constructs.
"""

from __future__ import annotations

import re
from typing import Final

_REPLACEMENT_PARTS: Final = re.compile(r"\\(.)|\$(\d+)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|([^\\$]+|.)", re.DOTALL)
_GROUP_NAME: Final = re.compile(r"(?<!\\)\(\?<(?=[a-zA-Z])")


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern; raises ``re.error``."""
    return re.compile(_GROUP_NAME.sub("(?P<", pattern))


def replaced(pattern: re.Pattern[str], replacement: str, text: str, *, first_only: bool = False) -> str:
    """As Java's ``replaceAll`` and ``replaceFirst``: ``$1`` is a group, and a character after a backslash is
    literal."""

    def expand(match: re.Match[str]) -> str:
        return "".join(
            _reference(number, match) if number else match[name] or "" if name else escaped or plain
            for escaped, number, name, plain in _REPLACEMENT_PARTS.findall(replacement)
        )

    return pattern.sub(expand, text, count=1 if first_only else 0)


def _reference(number: str, match: re.Match[str]) -> str:
    """The group number of a ``$number`` reference: the longest run of digits that is a group; otherwise the reference
    is literal."""
    groups = match.re.groups
    for digits in range(len(number), 0, -1):
        if int(number[:digits]) <= groups:
            return (match[int(number[:digits])] or "") + number[digits:]
    return f"${number}"
