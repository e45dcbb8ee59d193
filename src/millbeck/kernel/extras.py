"""Error messages for missing third-party modules: they name the extra of this package to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs_extra(name: str) -> Iterator[None]:
    """The imports within the block need ``millbeck[name]``; the error for a missing module says so."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("millbeck"):
            raise
        message = f"No module named {error.name!r}: pip install 'millbeck[{name}]'"
        raise ModuleNotFoundError(message, name=error.name, path=error.path) from None
