"""Regular expression subscriptions with RE2, whose matching time is linear in the length of the text.

Python's ``re`` backtracks, so a client's expression could block the broker almost indefinitely. An expression must
match the whole topic name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from millbeck.kernel import errors

LENGTH_MAX = 4096
MEMORY_BYTES_MAX = 1 << 20
"""Memory limit of one compiled expression; a larger one is rejected."""


def check(expression: str) -> None:
    """Raise `InvalidRegularExpression` if the expression is not valid."""
    _compiled(expression)


def matching(expressions: Iterable[str], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The matching topic names of each expression, ascending."""
    found: dict[str, tuple[str, ...]] = {}
    for expression in expressions:
        pattern = _compiled(expression)
        found[expression] = tuple(sorted(name for name in names if pattern.fullmatch(name) is not None))
    return found


def _compiled(expression: str) -> Any:
    # Imported when the first member subscribes by regular expression, which most nodes never need.
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
