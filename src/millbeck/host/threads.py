"""Jobs off the event loop, on a fixed number of daemon threads.

The standard executor has an unbounded queue and is joined when the interpreter exits, so one fsync stuck on a failed
disk would keep the process alive. Here the queue is bounded and an exit waits for no thread.
"""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_Work = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]


class HostThreads:
    """A thread pool that starts jobs in order. Threads are started on demand."""

    def __init__(self, *, thread_count: int = 8, waiting_count_max: int = 4096) -> None:
        self._thread_count_max = thread_count
        self._waiting_count_max = waiting_count_max
        self._thread_count = 0
        self._unfinished_count = 0
        self._work: SimpleQueue[_Work | None] = SimpleQueue()

    def run(self, job: Callable[[*Ts], T], *arguments: *Ts) -> asyncio.Future[T]:
        """Must be called on the running loop. A job whose future is cancelled before it starts does not run."""
        if self._unfinished_count >= self._thread_count_max + self._waiting_count_max:
            raise BlockingIOError(errno.EAGAIN, "too many jobs wait for a thread")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._unfinished_count += 1
        if self._thread_count < self._thread_count_max and self._unfinished_count > self._thread_count:
            self._thread_count += 1
            threading.Thread(target=self._serve, name=f"millbeck-{self._thread_count}", daemon=True).start()
        self._work.put((loop, future, job, arguments))
        return future

    def close(self) -> None:
        """End the threads after the queued jobs; a later `run` starts new ones."""
        for _ in range(self._thread_count):
            self._work.put(None)
        self._thread_count = 0

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            loop, future, job, arguments = work
            result: Any = None
            failure: BaseException | None = None
            if not future.cancelled():
                try:
                    result = job(*arguments)
                except BaseException as error:  # every outcome is passed to the awaiting task
                    failure = error
            try:
                loop.call_soon_threadsafe(self._finish, future, result, failure)
            except RuntimeError:
                # The event loop was closed meanwhile: nothing awaits the result.
                self._unfinished_count -= 1
            del work, future, job, arguments, result, failure

    def _finish(self, future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
        self._unfinished_count -= 1
        complete(future, result, failure)


def complete(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    """Complete the future of a job, unless it was cancelled."""
    if future.cancelled():
        return
    if failure is None:
        future.set_result(result)
    elif isinstance(failure, StopIteration):
        future.set_exception(RuntimeError("the job raised StopIteration"))
    else:
        future.set_exception(failure)
