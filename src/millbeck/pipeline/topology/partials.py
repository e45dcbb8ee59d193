"""Running values of aggregate functions: what is kept of the inputs so far, pure Python.

A partial result is a plain value that Spark can keep in its state. `fold` adds the inputs of one record; `merge` joins
the partial results of two groups of records, the earlier ones first. None is the partial result of no records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Inputs = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class PartialFunction:
    """``start`` makes the partial result of one record's inputs, None if the record does not count."""

    start: Callable[[Inputs], Any]
    merge: Callable[[Any, Any], Any]

    def fold(self, held: Any, inputs: Inputs) -> Any:
        return self.join(held, self.start(inputs))

    def join(self, earlier: Any, later: Any) -> Any:
        if earlier is None or later is None:
            return later if earlier is None else earlier
        return self.merge(earlier, later)


def _first_input(inputs: Inputs) -> Any:
    return inputs[0]


def _counted(inputs: Inputs) -> int | None:
    return None if any(each is None for each in inputs) else 1


def _listed(inputs: Inputs) -> list[Any] | None:
    return None if inputs[0] is None else [inputs[0]]


def _distinct(earlier: list[Any], later: list[Any]) -> list[Any]:
    return [*earlier, *[each for each in later if each not in earlier]]


def _summed(inputs: Inputs) -> dict[str, Any] | None:
    return None if inputs[0] is None else {"sum": inputs[0], "count": 1}


def _held(inputs: Inputs) -> dict[str, Any]:
    return {"value": inputs[0]}


def _held_unless_null(inputs: Inputs) -> dict[str, Any] | None:
    return None if inputs[0] is None else {"value": inputs[0]}


def _ranked(inputs: Inputs) -> dict[str, Any] | None:
    return None if inputs[1] is None else {"value": inputs[0], "rank": inputs[1]}


def _moments(inputs: Inputs) -> dict[str, Any] | None:
    return None if inputs[0] is None else {"count": 1, "mean": float(inputs[0]), "squares": 0.0}


def _joined_moments(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    count = one["count"] + other["count"]
    apart = other["mean"] - one["mean"]
    return {
        "count": count,
        "mean": one["mean"] + apart * other["count"] / count,
        "squares": one["squares"] + other["squares"] + apart * apart * one["count"] * other["count"] / count,
    }


def _is_less(one: Any, other: Any) -> bool:
    """Compare in Spark's order, in which NaN is the greatest number."""
    if one != one or other != other:
        return bool(one == one)
    return bool(one < other)


_MIN: Final = PartialFunction(_first_input, lambda one, other: other if _is_less(other, one) else one)
_MAX: Final = PartialFunction(_first_input, lambda one, other: other if _is_less(one, other) else one)
_COUNT: Final = PartialFunction(_counted, lambda one, other: one + other)
_MOMENTS: Final = PartialFunction(_moments, _joined_moments)

FIRST: Final = PartialFunction(_held, lambda one, other: one)
FIRST_UNLESS_NULL: Final = PartialFunction(_held_unless_null, lambda one, other: one)
LAST: Final = PartialFunction(_held, lambda one, other: other)
LAST_UNLESS_NULL: Final = PartialFunction(_held_unless_null, lambda one, other: other)

PARTIALS: Final[Mapping[str, PartialFunction]] = {
    "count": _COUNT,
    "count_if": PartialFunction(lambda inputs: 1 if inputs[0] else None, lambda one, other: one + other),
    "sum": PartialFunction(_first_input, lambda one, other: one + other),
    "avg": PartialFunction(
        _summed, lambda one, other: {"sum": one["sum"] + other["sum"], "count": one["count"] + other["count"]}
    ),
    "min": _MIN,
    "max": _MAX,
    "bool_and": PartialFunction(_first_input, lambda one, other: one and other),
    "bool_or": PartialFunction(_first_input, lambda one, other: one or other),
    "min_by": PartialFunction(_ranked, lambda one, other: other if _is_less(other["rank"], one["rank"]) else one),
    "max_by": PartialFunction(_ranked, lambda one, other: other if _is_less(one["rank"], other["rank"]) else one),
    "collect_list": PartialFunction(_listed, lambda one, other: one + other),
    "collect_set": PartialFunction(_listed, _distinct),
    "var_pop": _MOMENTS,
    "var_samp": _MOMENTS,
    "stddev_pop": _MOMENTS,
    "stddev_samp": _MOMENTS,
}
"""The functions by the names of Spark's SQL; ``first`` and ``last`` are above, with and without null."""


@dataclass(frozen=True, slots=True)
class PartialResults:
    """The partial results of several functions, each of which takes some of a record's inputs."""

    functions: tuple[PartialFunction, ...]
    widths: tuple[int, ...]
    """How many inputs each function takes."""

    def start(self, inputs: Inputs) -> Inputs:
        made = []
        begin = 0
        for function, width in zip(self.functions, self.widths, strict=True):
            made.append(function.start(inputs[begin : begin + width]))
            begin += width
        return tuple(made)

    def merge(self, earlier: Inputs, later: Inputs) -> Inputs:
        return tuple(
            function.join(one, other) for function, one, other in zip(self.functions, earlier, later, strict=True)
        )
