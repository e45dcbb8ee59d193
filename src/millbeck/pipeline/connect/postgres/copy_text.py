"""The text format of COPY: rows as lines, values between tabs, escapes for what would be mistaken."""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(rb"\\(.)", re.DOTALL)
_LETTERS: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def _unescaped(found: re.Match[bytes]) -> bytes:
    return _LETTERS.get(found[1], found[1])


def cells_of_line(line: bytes) -> list[bytes | None]:
    """The values of a row, which ends with a line break; None for NULL."""
    cells: list[bytes | None] = []
    for part in line[:-1].split(b"\t"):
        if b"\\" not in part:
            cells.append(part)
        elif part == b"\\N":
            cells.append(None)
        else:
            cells.append(_ESCAPE.sub(_unescaped, part))
    return cells
