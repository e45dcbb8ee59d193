"""Sizes on the command line: a number of bytes, or one with a unit (``10KB`` is 10,000, ``10KiB`` is 10,240)."""

from __future__ import annotations

import re
from typing import Final

import click

_SIZE: Final = re.compile(r"(\d{1,18})\s*(?:([kmgt]?)(i?)b?)?", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class ByteSizeType(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The type of options that take a size of at least one byte."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = _SIZE.fullmatch(str(value).strip())
        if found is None or (found[3] and not found[2]):
            self.fail(f"{value!r} is not a number of bytes, such as 50000000, 50MB or 48MiB", param, ctx)
        size: int = int(found[1]) * (1024 if found[3] else 1000) ** _POWERS[(found[2] or "").lower()]
        if size < 1:
            self.fail(f"{value!r} is less than one byte", param, ctx)
        return size
