"""Matches transactional ids against patterns with RE2, in time linear in the length of the text.

Python's ``re`` backtracks, so a client's expression could block the broker almost indefinitely.
"""

from __future__ import annotations

from collections.abc import Callable

from millbeck.kernel.errors import InvalidRegularExpression

LENGTH_MAX = 4096
MEMORY_BYTES_MAX = 1 << 20


def matcher(expression: str) -> Callable[[str], bool]:
    """Return a function that matches a whole transactional id; raises `InvalidRegularExpression`."""
    # Imported with the first pattern, which most nodes never receive.
    import re2

    if len(expression) > LENGTH_MAX:
        raise InvalidRegularExpression(f"the pattern is longer than {LENGTH_MAX} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    try:
        compiled = re2.compile(expression, options=options)
    except re2.error:
        raise InvalidRegularExpression(f"`{expression}` is not a valid regular expression") from None
    return lambda text: compiled.fullmatch(text) is not None
