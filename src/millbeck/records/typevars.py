"""The types of a record's key and value: ``bytes`` by default.

Separate from the compiled modules, since a type variable's default exists at run time only from Python 3.13 on.
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
