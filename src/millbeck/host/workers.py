"""Long jobs in separate processes, so that they take no time of the event loop and its processor.

A worker is a fresh interpreter (nothing is forked from a process that has threads and sockets), started when there is
a job for it, and ended after an idle time. Its modules are loaded with the first job: a node without jobs pays
nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from millbeck.kernel.environment import Files, WorkerContext

if TYPE_CHECKING:
    from millbeck.host.worker_thread import HostWorkerHandle, WorkerThread

Given = TypeVar("Given")
Gain = TypeVar("Gain")

IDLE_SECONDS: Final = 60.0
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from millbeck.host.worker_process import main; main()"
)


class HostWorkers:
    """Starts a worker for every job; the number of concurrent jobs is limited by the callers."""

    def __init__(self, files: Files, *, in_processes: bool = True, idle_seconds: float = IDLE_SECONDS) -> None:
        self._files = files
        self._command = [sys.executable, "-c", _PROGRAM] if in_processes and sys.executable else None
        self._idle_seconds = idle_seconds
        self._idle: list[WorkerThread] = []
        self._number = 0

    def start(
        self, job: Callable[[WorkerContext, Given], Gain], argument: Given, on_report: Callable[[object], None]
    ) -> HostWorkerHandle:
        """Start a job; must be called on the running loop."""
        import pickle

        from millbeck.host.worker_thread import HostWorkerHandle, WorkerThread

        loop = asyncio.get_running_loop()
        self._number += 1
        order = pickle.dumps((job, argument), protocol=pickle.HIGHEST_PROTOCOL)
        handle = HostWorkerHandle(self._number, order, on_report, loop)
        worker = self._idle.pop() if self._idle else WorkerThread(self._files, self._command, self._finished)
        if worker.idle_timer is not None:
            worker.idle_timer.cancel()
            worker.idle_timer = None
        worker.give(handle)
        return handle

    def close(self) -> None:
        for worker in self._idle:
            self._release(worker)
        self._idle.clear()

    def _finished(self, worker: WorkerThread, handle: HostWorkerHandle, result: Any, failure: Exception | None) -> None:
        self._idle.append(worker)
        worker.idle_timer = handle.loop.call_later(self._idle_seconds, partial(self._retire, worker))
        if handle.result.done():
            return
        if failure is None:
            handle.result.set_result(result)
        else:
            handle.result.set_exception(failure)

    def _retire(self, worker: WorkerThread) -> None:
        self._idle.remove(worker)
        self._release(worker)

    def _release(self, worker: WorkerThread) -> None:
        if worker.idle_timer is not None:
            worker.idle_timer.cancel()
        worker.end()
