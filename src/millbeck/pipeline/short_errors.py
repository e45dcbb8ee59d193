"""Short errors: methods called by Spark raise `PipelineError` with its message and without the traceback.

Spark copies the whole traceback of a Python source or sink into its own message, including all causes, so that the
helpful line comes last. A message with the problem and its remedy needs no traceback.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from inspect import isgenerator
from typing import Any, Final, ParamSpec, TypeVar, cast

from millbeck.pipeline.errors import PipelineError

P = ParamSpec("P")
R = TypeVar("R")

_SIMILAR: Final = 0.6


def with_short_errors(method: Callable[P, R]) -> Callable[P, R]:
    """A decorator for methods called by Spark; errors of a generator are shortened while it runs."""

    @functools.wraps(method)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            result = method(*arguments, **named)
        except PipelineError as error:
            raise error.with_traceback(None) from None
        return cast(R, _each(result)) if isgenerator(result) else result

    return call


def _each(generator: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from generator
    except PipelineError as error:
        raise error.with_traceback(None) from None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean orders?`` for a name that looks mistyped, or an empty string."""
    from difflib import get_close_matches

    by_lowered = {each.lower(): each for each in known}
    found = get_close_matches(name.lower()[:100], list(by_lowered), n=1, cutoff=_SIMILAR)
    return f"; did you mean {by_lowered[found[0]]}?" if found else ""
