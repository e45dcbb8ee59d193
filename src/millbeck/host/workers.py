"""Long work in processes of its own, so that the loop and its processor are left alone.

A worker is a fresh interpreter (nothing is forked from a process that has threads and sockets) started when there is
work for it, and ended when there was none for a while. What it takes is loaded with the first job: a node that never
has one pays nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from millbeck.kernel.environment import Files, Workplace

if TYPE_CHECKING:
    from millbeck.host.worker_thread import HostErrand, WorkerThread

Given = TypeVar("Given")
Gain = TypeVar("Gain")

IDLE_SECONDS: Final = 60.0
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from millbeck.host.worker_process import main; main()"
)


class HostWorkers:
    """Every job gets a worker; who starts more at a time than the machine can bear is not stopped here."""

    def __init__(self, files: Files, *, in_processes: bool = True, idle_seconds: float = IDLE_SECONDS) -> None:
        self._files = files
        self._command = [sys.executable, "-c", _PROGRAM] if in_processes and sys.executable else None
        self._idle_seconds = idle_seconds
        self._idle: list[WorkerThread] = []
        self._number = 0

    def start(
        self, job: Callable[[Workplace, Given], Gain], argument: Given, on_report: Callable[[object], None]
    ) -> HostErrand:
        """Must be called on the running loop."""
        import pickle

        from millbeck.host.worker_thread import HostErrand, WorkerThread

        loop = asyncio.get_running_loop()
        self._number += 1
        order = pickle.dumps((job, argument), protocol=pickle.HIGHEST_PROTOCOL)
        errand = HostErrand(self._number, order, on_report, loop)
        worker = self._idle.pop() if self._idle else WorkerThread(self._files, self._command, self._finished)
        if worker.idle_timer is not None:
            worker.idle_timer.cancel()
            worker.idle_timer = None
        worker.give(errand)
        return errand

    def close(self) -> None:
        for worker in self._idle:
            self._let_go(worker)
        self._idle.clear()

    def _finished(self, worker: WorkerThread, errand: HostErrand, result: Any, failure: Exception | None) -> None:
        self._idle.append(worker)
        worker.idle_timer = errand.loop.call_later(self._idle_seconds, partial(self._retire, worker))
        if errand.result.done():
            return
        if failure is None:
            errand.result.set_result(result)
        else:
            errand.result.set_exception(failure)

    def _retire(self, worker: WorkerThread) -> None:
        self._idle.remove(worker)
        self._let_go(worker)

    def _let_go(self, worker: WorkerThread) -> None:
        if worker.idle_timer is not None:
            worker.idle_timer.cancel()
        worker.end()
