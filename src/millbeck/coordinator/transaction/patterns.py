"""Transactional ids by pattern: RE2's syntax, and matching time that grows with the text and nothing else.

Python's own ``re`` backtracks, and a client's expression could keep the broker busy for years.
"""

from __future__ import annotations

from collections.abc import Callable

from millbeck.kernel.errors import InvalidRegularExpression

LENGTH_MAX = 4096
MEMORY_BYTES_MAX = 1 << 20


def matcher(expression: str) -> Callable[[str], bool]:
    """Whether an id matches as a whole; raises `InvalidRegularExpression`."""
    # Loaded with the first pattern, which on most nodes never comes.
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
