"""Keeps a run alive: a child process does the work, and is started again when it was killed or lost its Java.

Nobody inside a driver can mend it when it is killed from outside, by a system that is short of memory or by Java's own
fault. So the process that the user called only waits: it forks before Spark is started, holds the run's lock, which the
child has with it, passes on what asks it to stop, and forks again, after the waits of `backoff`, when the child ended
without having said how. A child whose keeper is killed stops by itself, after its batch.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from millbeck.host.linux import die_with_parent
from millbeck.pipeline.running.backoff import Backoff
from millbeck.pipeline.running.run_directory import RunDirectory

LOST: Final = 75
"""The exit status of a child that asks to be started again."""
_FAILED: Final = 1
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Keeper:
    def __init__(self, directory: RunDirectory, backoff: Backoff, *, say: Callable[[str], None]) -> None:
        self._directory = directory
        self._backoff = backoff
        self._say = say
        self._child = 0
        self._stops = threading.Event()

    def keep(self) -> int | None:
        """None in a child, which goes on to do the work; in the keeper, at the end of all, the exit status."""
        previous = {number: signal.signal(number, self._signalled) for number in _SIGNALS}
        keeper = os.getpid()
        while True:
            began = time.monotonic()
            before = self._progress()
            _flush()
            self._child = os.fork()
            if self._child == 0:
                _become_child(keeper, previous)
                if self._stops.is_set():
                    # The signal came between the fork and the handlers that the work has.
                    sys.exit(LOST)
                return None
            if self._stops.is_set():
                self._pass_on(signal.SIGTERM)
            code = self._await_child()
            if code is None and self._stops.is_set():
                # It was asked to stop before it could know how.
                self._directory.write_status(state="stopped")
                code = 0
            if code is not None:
                break
            wait_seconds = self._backoff.failed(time.monotonic() - began, has_progressed=self._progress() != before)
            if wait_seconds is None:
                self._directory.write_status(state="failed", error="the driver was lost too often")
                self._say("failed: the driver was lost too often")
                code = _FAILED
                break
            self._wait(wait_seconds)
            if self._stops.is_set():
                self._directory.write_status(state="stopped")
                code = 0
                break
        for number, handler in previous.items():
            signal.signal(number, handler)
        return code

    def _await_child(self) -> int | None:
        """How the child ended, None when it is to be started again."""
        _, status = os.waitpid(self._child, 0)
        self._child = 0
        code = os.waitstatus_to_exitcode(status)
        return None if code < 0 or code == LOST else code

    def _wait(self, wait_seconds: float) -> None:
        error = "the driver was lost"
        self._directory.write_status(state="waiting", error=error, restarts=self._directory.restarts() + 1)
        self._say(f"failed: {error}; starting it again in {wait_seconds:.0f} s")
        self._stops.wait(wait_seconds)

    def _progress(self) -> Any:
        return self._directory.status().get("progress")

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._stops.set()
        self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        if self._child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, number)


def _become_child(keeper: int, handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)
    die_with_parent(signal.SIGTERM)
    if os.getppid() != keeper:
        # It has died before this process could ask to be told.
        sys.exit(LOST)


def _flush() -> None:
    """What waits in a buffer would be written by both."""
    sys.stdout.flush()
    sys.stderr.flush()
