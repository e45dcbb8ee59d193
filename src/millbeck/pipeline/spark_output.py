"""Filter noise from the output of Spark's processes.

Spark's Java process, and the Python workers it starts, write to the user's terminal, and some of that cannot be
disabled by settings. Java is started with a pipe as its standard error; a thread passes on the useful lines. Spark's
Python side also prints a traceback when Java has gone, in addition to the error it raises.
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
_is_silent = threading.Event()


def silence() -> None:
    """Drop all further output of Spark's processes, because they are being stopped."""
    _is_silent.set()


@contextmanager
def without_noise() -> Iterator[None]:
    """Filter the standard error of processes started within the block, for as long as they live."""
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
        # If Java did not start, it has printed the reason, and the raised error refers to it.
        thread.join(_LAST_WORDS_SECONDS)
        raise
    os.dup2(terminal, _STANDARD_ERROR)


def _pass_on(reading: int, terminal: int) -> None:
    try:
        with open(reading, "rb") as lines:
            for line in useful(iter(lambda: lines.readline(_LINE_BYTES_MAX), b"")):
                if not _is_silent.is_set():
                    os.write(terminal, line)
    except OSError:
        # The terminal is closed; Java gets an error when it writes.
        pass
    finally:
        os.close(terminal)


def useful(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines that are not noise; an empty line after noise is dropped too."""
    was_noise = False
    for line in lines:
        is_noise = line.startswith(_NOISE)
        if not is_noise and not (was_noise and not line.strip()):
            yield line
        was_noise = is_noise


def ignore_lost_connections(server: type[BaseServer]) -> None:
    """Make servers of this class ignore lost connections; other errors are still printed."""
    usual = server.handle_error

    def handle_error(self: BaseServer, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            usual(self, request, client_address)

    server.handle_error = handle_error  # type: ignore[method-assign]


def is_not_logged_by_py4j(record: logging.LogRecord) -> bool:
    """A logging filter that drops py4j's records: py4j logs every error that it also raises."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname
