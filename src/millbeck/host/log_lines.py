"""Log messages as single lines: names that clients choose must not begin a line of their own, or control a terminal."""

from __future__ import annotations

import logging
import re
from typing import Final, TextIO

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class LineFormatter(logging.Formatter):
    """Escapes the control characters of a message; the lines of a traceback follow it as always."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        record.message = _CONTROL.sub(lambda found: ascii(found.group())[1:-1], record.message)
        return super().formatMessage(record)


def log_to(stream: TextIO, level: int, form: str = logging.BASIC_FORMAT) -> None:
    """Log to a stream, unless logging is configured already, as ``logging.basicConfig`` does."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter(form))
    logging.basicConfig(level=level, handlers=[handler])
