"""An asyncio event loop in virtual time.

There is no selector and no real clock: when nothing is ready, time jumps to the next timer. Callbacks of one process
keep their order; between processes the order within one instant is drawn from the seed. Unmodified asyncio code
(tasks, timeouts, locks, queues, streams) runs on it; ``create_server``, ``create_connection`` and ``run_in_executor``
go to the simulated network and threads that a `World` installs.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import random
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from millbeck.simulation.environment.process import KERNEL, PROCESS, Process

_CALLBACKS_PER_INSTANT_MAX = 2_000_000
_CANCELLED_TIMERS_BEFORE_PURGE = 1024
# The collector is off during a run; young garbage goes at fixed steps, so finalizers run at the same ones every time.
_CALLBACKS_BEFORE_COLLECTION = 200_000


class SimulationStuck(Exception):
    """No callback is scheduled, virtual time does not advance, or the virtual deadline has passed."""


class SimLoop(asyncio.BaseEventLoop):
    def __init__(self, generator: random.Random, *, order_is_drawn: bool = True) -> None:
        super().__init__()
        self._now = 0.0
        self._generator = generator
        self._order_is_drawn = order_is_drawn
        self._callbacks: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_count = 0
        self._cancelled_count = 0
        self._instant_callback_count = 0
        self.callback_count = 0
        self.deadline = float("inf")
        self.failures: list[dict[str, Any]] = []
        self.on_exit: Callable[[Process, BaseException], None] | None = None
        self.on_turn: Callable[[dict[Process, None]], None] | None = None
        """Called at the end of every iteration with the processes that ran in it."""
        self.services: Any = None
        self.set_task_factory(self._make_task)  # type: ignore[arg-type]
        self.set_exception_handler(self._record_failure)

    def time(self) -> float:
        return self._now

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
        process = PROCESS.get()
        if process is not None:
            process.remember(task)
        return task

    def _record_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        process = PROCESS.get()
        if process is None or process.is_alive:
            self.failures.append({**context, "process": process})

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = events.Handle(callback, args, self, context)
        self._callbacks.append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + max(0.0, delay), callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = events.TimerHandle(when, callback, args, self, context)
        handle._scheduled = True  # type: ignore[attr-defined]
        self._timer_count += 1
        heapq.heappush(self._timers, (when, self._timer_count, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._cancelled_count += 1
        if self._cancelled_count > _CANCELLED_TIMERS_BEFORE_PURGE and self._cancelled_count * 2 > len(self._timers):
            self._timers = [entry for entry in self._timers if not entry[2].cancelled()]
            heapq.heapify(self._timers)
            self._cancelled_count = 0

    def _run_once(self) -> None:
        timers = self._timers
        ready = self._callbacks
        if not ready:
            while timers and timers[0][2].cancelled():
                heapq.heappop(timers)
            if not timers:
                raise SimulationStuck(f"no callback is scheduled at {self._now:.3f} s")
            when = timers[0][0]
            if when > self._now:
                if when > self.deadline:
                    raise SimulationStuck(f"the virtual deadline of {self.deadline:.3f} s has passed")
                self._now = when
                self._instant_callback_count = 0
        while timers and timers[0][0] <= self._now:
            handle = heapq.heappop(timers)[2]
            handle._scheduled = False  # type: ignore[attr-defined]
            if not handle.cancelled():
                ready.append(handle)
        batch = list(ready)
        ready.clear()
        if self._order_is_drawn and len(batch) > 1:
            batch = self._interleave(batch)
        self._instant_callback_count += len(batch)
        if self._instant_callback_count > _CALLBACKS_PER_INSTANT_MAX:
            raise SimulationStuck(f"callbacks schedule each other endlessly at {self._now:.3f} s")
        self._run_batch(batch)

    def _run_batch(self, batch: list[asyncio.Handle]) -> None:
        ran = 0
        active: dict[Process, None] = {}
        for handle in batch:
            if handle._cancelled:
                continue
            process: Process | None = handle._context.get(PROCESS)  # type: ignore[attr-defined]
            if process is not None and process.is_held:
                if process.is_alive:
                    process.held.append(handle)
                continue
            ran += 1
            if process is not None:
                active[process] = None
            try:
                handle._run()
            except SystemExit as error:
                if process is None or self.on_exit is None:
                    raise
                self.on_exit(process, error)
        before = self.callback_count
        self.callback_count += ran
        if before // _CALLBACKS_BEFORE_COLLECTION != self.callback_count // _CALLBACKS_BEFORE_COLLECTION:
            gc.collect(1)
        if self.on_turn is not None:
            self.on_turn(active)

    def _interleave(self, batch: list[asyncio.Handle]) -> list[asyncio.Handle]:
        """Draw the process whose callback runs next; callbacks of one process keep their order."""
        queues: dict[Process | None, deque[asyncio.Handle]] = {}
        for handle in batch:
            process: Process | None = handle._context.get(PROCESS)  # type: ignore[attr-defined]
            queue = queues.get(process)
            if queue is None:
                queue = queues[process] = deque()
            queue.append(handle)
        if len(queues) == 1:
            return batch
        waiting = list(queues.values())
        drawn: list[asyncio.Handle] = []
        below = self._generator.random
        while len(waiting) > 1:
            index = int(below() * len(waiting))
            queue = waiting[index]
            drawn.append(queue.popleft())
            if not queue:
                waiting[index] = waiting[-1]
                waiting.pop()
        drawn.extend(waiting[0])
        return drawn

    def hold(self, process: Process, seconds: float) -> None:
        """Run none of the process's callbacks for a while; they are kept. Holds overlap."""
        if process.is_alive:
            process.hold_count += 1
            process.is_held = True
            self.call_later(seconds, self._release, process, context=KERNEL)

    def _release(self, process: Process) -> None:
        process.hold_count -= 1
        if process.is_alive and process.hold_count == 0:
            process.is_held = False
            self._callbacks.extend(process.held)
            process.held.clear()

    def _process_events(self, event_list: object) -> None:
        raise AssertionError("the virtual event loop has no selector")

    def _write_to_self(self) -> None:
        pass

    async def create_server(self, *args: Any, **options: Any) -> Any:
        return await self.services.create_server(*args, **options)

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        return await self.services.create_connection(*args, **options)

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        return self.services.addresses(host, port)

    def run_in_executor(self, executor: object, function: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        return self.services.run_in_thread(function, *args)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        pass
