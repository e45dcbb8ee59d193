"""The types of a record's key and value: ``bytes`` where nothing else is said.

Apart from the compiled modules, since a type variable's default exists at run time from Python 3.13 on only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

__all__ = ["K", "V"]
