"""Names the extra of this package to install where a module of somebody else is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs_extra(name: str) -> Iterator[None]:
    """Imports within the block come with ``millbeck[name]``: where one is missing, the error says so."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("millbeck"):
            raise
        message = f"No module named {error.name!r}: pip install 'millbeck[{name}]'"
        raise ModuleNotFoundError(message, name=error.name, path=error.path) from None
