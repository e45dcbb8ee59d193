"""Names of Java's classes in settings: each may be given without its package."""

from __future__ import annotations

from collections.abc import Iterable


def short_name(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def full_name(given: str, known: Iterable[str]) -> str:
    """The known class that ``given`` names without its package; any other name as it is."""
    return next((each for each in known if short_name(each) == given), given)
