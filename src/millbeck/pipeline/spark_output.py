"""What Spark's processes print, without the lines that tell nobody anything.

Spark's Java, and the Python workers that it starts, write to the terminal of whoever starts it, and some of what they
write no setting turns off. Java is started with one end of a pipe as its standard error; a thread at the other end
passes lines on. The Python side of Spark prints a stack when its Java has gone, beside the error that it raises.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import Any, Final

_NOISE: Final = (
    b"WARNING: Using incubator modules",
    b"Starting Streaming TransformWithStateInPandas Python worker",
    b"Streaming TransformWithStateInPandas Python worker",
)
_STANDARD_ERROR: Final = 2
_LINE_BYTES_MAX: Final = 1 << 16
_LAST_WORDS_SECONDS: Final = 2.0


@contextmanager
def without_noise() -> Iterator[None]:
    """Processes that are started meanwhile have their standard error filtered, for as long as they live."""
    reading, writing = os.pipe()
    terminal = os.dup(_STANDARD_ERROR)
    thread = threading.Thread(target=_pass_on, args=(reading, terminal), name="spark output", daemon=True)
    thread.start()
    os.dup2(writing, _STANDARD_ERROR)
    os.close(writing)
    try:
        yield
    except BaseException:
        os.dup2(terminal, _STANDARD_ERROR)
        # A Java that did not start has said why, and the error that is raised points at it.
        thread.join(_LAST_WORDS_SECONDS)
        raise
    os.dup2(terminal, _STANDARD_ERROR)


def _pass_on(reading: int, terminal: int) -> None:
    try:
        with open(reading, "rb") as lines:
            for line in useful(iter(lambda: lines.readline(_LINE_BYTES_MAX), b"")):
                os.write(terminal, line)
    except OSError:
        # Nobody reads the terminal any more; Java is told when it writes.
        pass
    finally:
        os.close(terminal)


def useful(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Noise is left out, and the empty line that follows it."""
    was_noise = False
    for line in lines:
        is_noise = line.startswith(_NOISE)
        if not is_noise and not (was_noise and not line.strip()):
            yield line
        was_noise = is_noise


def ends_quietly(server: type[BaseServer]) -> None:
    """A connection that is cut is nothing that servers of this kind print about; everything else is."""
    usual = server.handle_error

    def handle_error(self: BaseServer, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            usual(self, request, client_address)

    server.handle_error = handle_error  # type: ignore[method-assign]


def is_news(record: logging.LogRecord) -> bool:
    """For handlers: Spark's bridge to Java logs what it raises, too, with its stack."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname
