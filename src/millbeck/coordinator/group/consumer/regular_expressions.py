"""Subscriptions by pattern: RE2's syntax and RE2's promise, matching time that grows with the text and nothing else.

Python's own ``re`` backtracks, and a client's expression could keep the broker busy for years. An expression must match
a topic's whole name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from millbeck.kernel import errors

LENGTH_MAX = 4096
MEMORY_BYTES_MAX = 1 << 20
"""For one compiled expression; a larger one is refused."""


def check(expression: str) -> None:
    """Raise `InvalidRegularExpression` when it cannot be used."""
    _compiled(expression)


def matching(expressions: Iterable[str], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each expression the names it matches, ascending."""
    found: dict[str, tuple[str, ...]] = {}
    for expression in expressions:
        pattern = _compiled(expression)
        found[expression] = tuple(sorted(name for name in names if pattern.fullmatch(name) is not None))
    return found


def _compiled(expression: str) -> Any:
    # Loaded when the first member subscribes by pattern, which on most nodes is never.
    import re2

    if len(expression) > LENGTH_MAX:
        raise errors.InvalidRegularExpression(f"SubscribedTopicRegex is longer than {LENGTH_MAX} characters.")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    try:
        return re2.compile(expression, options=options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else error
        raise errors.InvalidRegularExpression(
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {reason}."
        ) from error
