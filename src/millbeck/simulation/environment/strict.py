"""Strict mode: inside a simulated node the real clock, randomness, files, sockets and threads raise.

The calls are replaced during a run and check the caller. The harness, the simulator and Python's implicit calls
(imports, logging, tracebacks) may use the real machine; code of a node may not, not even through a library. Names bound
before the run (``from time import monotonic``) are not replaced; the linter's bans cover those.
"""

from __future__ import annotations

import builtins
import io
import os
import random
import secrets
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from millbeck.simulation.environment.process import PROCESS

_FORBIDDEN: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")),
    (random, ("random", "randrange", "randint", "choice", "shuffle", "uniform", "getrandbits", "randbytes", "sample")),
    (secrets, ("randbelow", "token_bytes", "token_hex", "choice")),
    (uuid, ("uuid1", "uuid4")),
    (os, ("urandom", "open", "stat", "listdir", "mkdir", "makedirs", "replace", "rename", "unlink", "remove", "rmdir")),
    (os, ("pread", "pwrite", "fsync", "ftruncate", "truncate", "scandir")),
    (builtins, ("open",)),
    (io, ("open",)),
    (socket, ("socket", "create_connection", "getaddrinfo")),
    (threading.Thread, ("start",)),
)
_LOOP_MODULE = "millbeck.simulation.environment.loop"
_TRUSTED = (
    "importlib",
    "_frozen_importlib",
    "_frozen_importlib_external",
    "logging",
    "linecache",
    "traceback",
    "tokenize",
    "inspect",
    "warnings",
    "_pytest",
    "pytest_timeout",
    "hypothesis",
)


class RealIoError(BaseException):
    """A node used the real machine, not its environment. Not an ``Exception``: a broad handler must not hide it."""


Report = Callable[[BaseException], None]


@contextmanager
def strict_mode(report: Report = lambda leak: None) -> Iterator[None]:
    """``report`` is called for every such use, even if the node catches the error."""
    replaced: list[tuple[Any, str, Any]] = []
    try:
        for owner, names in _FORBIDDEN:
            for name in names:
                original = getattr(owner, name, None)
                if original is not None:
                    replaced.append((owner, name, original))
                    setattr(owner, name, _guarded(original, f"{owner.__name__}.{name}", report))
        yield
    finally:
        for owner, name, original in reversed(replaced):
            setattr(owner, name, original)


def _guarded(original: Callable[..., Any], label: str, report: Report) -> Any:
    if isinstance(original, type):
        return _guarded_class(original, label, report)

    def call(*arguments: Any, **options: Any) -> Any:
        _check_caller(label, report)
        return original(*arguments, **options)

    return call


def _guarded_class(original: type, label: str, report: Report) -> type:
    """A subclass, so that ``isinstance`` and other subclasses keep working while the name is replaced."""

    class Guarded(original):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            _check_caller(label, report)
            super().__init__(*arguments, **options)

    return Guarded


def _check_caller(label: str, report: Report) -> None:
    process = PROCESS.get()
    if process is None or process.is_harness:
        return
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module: str = frame.f_globals.get("__name__", "")
        if module == _LOOP_MODULE:
            break
        if module.partition(".")[0] in _TRUSTED:
            return
        frame = frame.f_back
    leak = RealIoError(f"{label} was called inside the simulated process {process.name}")
    report(leak)
    raise leak
