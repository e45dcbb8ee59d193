"""Errors without the way they came: what Spark calls raises `PipelineError` with its message and little else.

Spark puts the whole traceback of a Python source or sink into its own message, causes of causes included, and the one
line that helps stands last. A message that says what is wrong and what to do needs no traceback.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from inspect import isgenerator
from typing import Any, ParamSpec, TypeVar, cast

from millbeck.pipeline.errors import PipelineError

P = ParamSpec("P")
R = TypeVar("R")


def plainly(method: Callable[P, R]) -> Callable[P, R]:
    """For methods that Spark calls; a generator's errors are cut short while it runs."""

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
