"""Columns whose texts are hidden or cut: ``column.mask.with.N.chars`` and the like, with a number in the name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from millbeck.pipeline.connect.postgres.filters import matches, patterns_of
from millbeck.pipeline.connect.postgres.tables import TableId

_STARS: Final = re.compile(r"column\.mask\.with\.(\d{1,9})\.chars")
_CUT: Final = re.compile(r"column\.truncate\.to\.(\d{1,9})\.chars")
_HASH: Final = re.compile(r"column\.mask\.hash\.v2\.([^.]+)\.with\.salt\.(.+)")
_CHARACTERS_MAX: Final = 1 << 20
_ALGORITHMS: Final = {"SHA-256": "sha256", "SHA-512": "sha512", "SHA-384": "sha384", "SHA-1": "sha1", "MD5": "md5"}
PREFIXES: Final = ("column.mask.", "column.truncate.")


@dataclass(frozen=True, slots=True)
class Mask:
    """``change`` is done to texts of the columns that match."""

    columns: tuple[re.Pattern[str], ...]
    change: Callable[[str], str]
    parameter: tuple[str, str]

    def has(self, table: TableId, column: str) -> bool:
        return matches(self.columns, f"{table}.{column}")


def masks_of(settings: Mapping[str, Any]) -> tuple[Mask, ...]:
    """The masks of a connector's settings. Raises ValueError that names the setting."""
    found = (_mask(name, str(text)) for name, text in settings.items() if name.startswith(PREFIXES))
    return tuple(mask for mask in found if mask is not None)


def _mask(name: str, text: str) -> Mask | None:
    try:
        columns = patterns_of(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if stars := _STARS.fullmatch(name):
        shown = "*" * min(int(stars[1]), _CHARACTERS_MAX)
        return Mask(columns, lambda value: shown, ("masked", "true"))
    if cut := _CUT.fullmatch(name):
        length = int(cut[1])
        return Mask(columns, lambda value: value[:length], ("truncateLength", cut[1]))
    if hashed := _HASH.fullmatch(name):
        algorithm = _ALGORITHMS.get(hashed[1].upper())
        if algorithm is None:
            raise ValueError(f"{name}: {hashed[1]} is none of {', '.join(_ALGORITHMS)}")
        salt = hashed[2].encode()
        return Mask(
            columns,
            lambda value: hashlib.new(algorithm, salt + value.encode(), usedforsecurity=False).hexdigest(),
            ("masked", "true"),
        )
    raise ValueError(
        f"{name} is not known: there are column.mask.with.N.chars, column.mask.hash.v2.ALGORITHM.with.salt.SALT and "
        "column.truncate.to.N.chars"
    )
