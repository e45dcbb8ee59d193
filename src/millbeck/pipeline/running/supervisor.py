"""Supervise a run: a child process does the work, and is restarted when it is killed or loses its Java process.

A driver cannot recover when it is killed from outside, by the out-of-memory killer or by a crash of Java. So the
process that the user started only supervises: it forks before Spark starts, holds the run's lock (inherited by the
child), forwards stop signals, and forks again, with the waits of `backoff`, if the child ended without a final status.
A child whose supervisor is killed stops by itself, after its batch.
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
from millbeck.pipeline.running.backoff import RestartBackoff
from millbeck.pipeline.running.run_directory import RunDirectory

LOST: Final = 75
"""The exit status of a child that asks to be restarted."""
_FAILED: Final = 1
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_POLL_SECONDS: Final = 0.1


class Supervisor:
    def __init__(self, directory: RunDirectory, backoff: RestartBackoff, *, report: Callable[[str], None]) -> None:
        self._directory = directory
        self._backoff = backoff
        self._report = report
        self._child = 0
        self._stops = threading.Event()

    def keep(self) -> int | None:
        """Fork and supervise children. Returns None in a child, which continues with the work; in the supervisor it
        returns the final exit status."""
        previous = {number: signal.signal(number, self._signalled) for number in _SIGNALS}
        supervisor_id = os.getpid()
        while True:
            began = time.monotonic()
            before = self._progress()
            _flush()
            self._child = os.fork()
            if self._child == 0:
                _become_child(supervisor_id, previous)
                if self._stops.is_set():
                    # The signal arrived between the fork and the child's own signal handlers.
                    sys.exit(LOST)
                return None
            if self._stops.is_set():
                self._pass_on(signal.SIGTERM)
            code = self._await_child()
            if code is None and self._stops.is_set():
                # The child got the stop signal before it had installed its handlers.
                self._directory.write_status(state="stopped")
                code = 0
            if code is not None:
                break
            wait_seconds = self._backoff.failed(time.monotonic() - began, has_progressed=self._progress() != before)
            if wait_seconds is None:
                self._directory.write_status(state="failed", error="the driver was lost too often")
                self._report("failed: the driver was lost too often")
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
        """The exit status of the child; None if it must be restarted."""
        # The handler of a signal that arrives just before a blocking waitpid would run only after the child ends.
        while (found := os.waitpid(self._child, os.WNOHANG))[0] == 0:
            time.sleep(_POLL_SECONDS)
        status = found[1]
        self._child = 0
        code = os.waitstatus_to_exitcode(status)
        return None if code < 0 or code == LOST else code

    def _wait(self, wait_seconds: float) -> None:
        error = "the driver was lost"
        self._directory.write_status(state="waiting", error=error, restarts=self._directory.restarts() + 1)
        self._report(f"failed: {error}; starting it again in {wait_seconds:.0f} s")
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


def _become_child(supervisor_id: int, handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)
    die_with_parent(signal.SIGTERM)
    if os.getppid() != supervisor_id:
        # The supervisor died before this process asked to be signalled on its death.
        sys.exit(LOST)


def _flush() -> None:
    """Flush buffers before the fork, otherwise both processes would write them."""
    sys.stdout.flush()
    sys.stderr.flush()
