"""The asyncio tasks of one node: supervision, time slices for long work, and jobs on threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar, TypeVarTuple

from millbeck.kernel.environment import Clock, Threads


class TaskSupervisor:
    """Supervises tasks. An `Exception` of a task goes to ``report``; any other `BaseException` goes to ``fail``, which
    ends the process.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        report: Callable[[Exception], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._report = report
        self._fail = fail
        self.running: dict[asyncio.Task[None], None] = {}

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self.running[task] = None
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self.running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, Exception):
                self._report(error)
            else:
                self._fail(error)

    async def cancel(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        tasks = list(self.running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


TURN_SECONDS: Final = 0.0025
"""The length of a time slice. Several long tasks may run at once, and then each takes this much of every loop
iteration."""


class TimeSlices:
    """The time slices of one long task: call `yield_to_loop` after each small step."""

    __slots__ = ("_clock", "_ends_at")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends_at = clock.monotonic() + TURN_SECONDS

    async def yield_to_loop(self) -> None:
        """Yield to the event loop when the time slice is used up; shared state may change meanwhile."""
        if self._clock.monotonic() >= self._ends_at:
            await asyncio.sleep(0)
            self._ends_at = self._clock.monotonic() + TURN_SECONDS


T = TypeVar("T")
Ts = TypeVarTuple("Ts")

RETRY_SECONDS: Final = 0.001


async def run_off_loop(threads: Threads, job: Callable[[*Ts], T], *arguments: *Ts) -> T:
    """Run a job on a thread once there is room for it; raises what the job raises."""
    while True:
        try:
            running = threads.run(job, *arguments)
        except BlockingIOError:
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return await running
