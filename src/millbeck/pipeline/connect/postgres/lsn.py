"""Positions in the write-ahead log: ``16/B374D848`` in PostgreSQL's texts, a number everywhere else."""

from __future__ import annotations

import re
from typing import Final

from millbeck.pipeline.connect.errors import InvalidValue

_TEXT: Final = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
LSN_MAX: Final = (1 << 64) - 1


def lsn_of(text: str) -> int:
    """Raises `InvalidValue` for a text that is no position."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise InvalidValue(f"{text[:40]!r} is no position in a write-ahead log")
    return int(found[1], 16) << 32 | int(found[2], 16)


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
