"""Validators of option values: a test, and a text with the allowed values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sized
from typing import Generic, TypeVar

T_contra = TypeVar("T_contra", contravariant=True)
T = TypeVar("T")


class Validator(Generic[T_contra]):
    """``accepts`` tests a parsed value; ``allowed`` completes the sentence "the value must be ..."."""

    __slots__ = ("accepts", "allowed")

    def __init__(self, accepts: Callable[[T_contra], bool], allowed: str) -> None:
        self.accepts = accepts
        self.allowed = allowed

    def __repr__(self) -> str:
        return self.allowed


def at_least(minimum: float) -> Validator[float]:
    return Validator(lambda value: value >= minimum, f"at least {minimum}")


def between(minimum: float, maximum: float) -> Validator[float]:
    """Accept numbers between two bounds, both included."""
    return Validator(lambda value: minimum <= value <= maximum, f"between {minimum} and {maximum}")


def one_of(*choices: T) -> Validator[T]:
    return Validator(lambda value: value in choices, f"one of {_listing(choices)}")


def each_of(*choices: str) -> Validator[tuple[str, ...]]:
    """Accept lists whose entries are among the choices, without repetition."""

    def accepts(entries: tuple[str, ...]) -> bool:
        return len(set(entries)) == len(entries) and all(entry in choices for entry in entries)

    return Validator(accepts, f"a list of {_listing(choices)} without repetition")


def distinct() -> Validator[tuple[str, ...]]:
    """Accept lists without empty or repeated entries."""
    return Validator(
        lambda entries: len(set(entries)) == len(entries) and "" not in entries,
        "a list without empty or repeated entries",
    )


def non_empty() -> Validator[Sized]:
    return Validator(lambda value: len(value) > 0, "non-empty")


def matching(pattern: str, allowed: str) -> Validator[str]:
    """Accept texts that match the regular expression as a whole; ``allowed`` describes it in words."""
    expression = re.compile(pattern)
    return Validator(lambda value: expression.fullmatch(value) is not None, allowed)


def all_of(*validators: Validator[T]) -> Validator[T]:
    return Validator(
        lambda value: all(validator.accepts(value) for validator in validators),
        " and ".join(validator.allowed for validator in validators),
    )


def _listing(choices: tuple[object, ...]) -> str:
    return ", ".join(str(choice) for choice in choices)
