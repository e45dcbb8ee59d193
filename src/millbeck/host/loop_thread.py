"""An event loop on a background thread, for synchronous programs: any thread may give it work and wait for the result.

The thread is a daemon: it never keeps a program from ending. After a fork the child has the object without the thread;
`is_fork` detects that.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

STARTING: Final = threading.Lock()
"""Held while a `LoopThread` is started, so that two concurrent first calls start only one."""
_END_SECONDS_MAX: Final = 5.0


class Delivery(Generic[T]):
    """The result of one record or call, set by the loop's thread; like `concurrent.futures.Future`, but cheaper.

    An event is created only if a thread waits before the result is set.
    """

    __slots__ = ("_callbacks", "_error", "_event", "_is_done", "_value")

    def __init__(self) -> None:
        self._is_done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._event: threading.Event | None = None
        self._callbacks: list[Callable[[Delivery[T]], object]] | None = None

    def done(self) -> bool:
        return self._is_done

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, or raise the error; `TimeoutError` after ``timeout`` seconds."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._value  # type: ignore[return-value]

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the result; returns the error, or None."""
        if not self._is_done:
            event = self._event
            if event is None:
                event = self._event = threading.Event()
            # The result may have been set before the event was visible to the loop's thread.
            if not self._is_done and not event.wait(timeout):
                raise TimeoutError("not acknowledged yet")
        return self._error

    def add_done_callback(self, callback: Callable[[Delivery[T]], object]) -> None:
        """Call ``callback`` with this object in the event loop's thread; if the result is set already, at once in this
        thread."""
        if self._callbacks is None:
            self._callbacks = []
        self._callbacks.append(callback)
        if self._is_done:
            self._call_back()

    def complete(self, value: T | None, error: BaseException | None = None) -> None:
        """Set the result; called once, by the loop's thread."""
        self._value = value
        self._error = error
        self._is_done = True
        if self._event is not None:
            self._event.set()
        if self._callbacks is not None:
            self._call_back()

    def _call_back(self) -> None:
        while self._callbacks:
            try:
                self._callbacks.pop(0)(self)
            except IndexError:
                return


class LoopThread:
    def __init__(self, name: str) -> None:
        self.lock: Final = threading.Lock()
        """Protects the state that the callers' threads share."""
        self._process_id = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    @property
    def is_fork(self) -> bool:
        """Whether this process is a fork of the one that has the thread."""
        return os.getpid() != self._process_id

    @property
    def is_caller(self) -> bool:
        """Whether the calling thread is the loop's own, which cannot wait for itself."""
        return threading.current_thread() is self._thread

    @property
    def is_stopped(self) -> bool:
        return not self._thread.is_alive()

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Run a function in the loop's thread, without waiting for it."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def run(self, work: Callable[[Caller], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in the loop and wait for its result; interrupting the wait cancels it.

        ``work`` gets a `Caller`, which runs functions in the calling thread meanwhile.
        """
        caller = Caller(self._loop)
        task: asyncio.Task[T] | None = None

        def begin() -> None:
            nonlocal task
            task = self._loop.create_task(work(caller))
            task.add_done_callback(caller.finished)

        self._loop.call_soon_threadsafe(begin)
        try:
            caller.serve()
        except BaseException:
            self._loop.call_soon_threadsafe(lambda: task is not None and task.cancel())
            raise
        assert task is not None
        return task.result()

    def stop(self) -> None:
        """End the loop and the thread."""
        if self._thread.is_alive() and not self.is_fork:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_SECONDS_MAX)


class Caller:
    """A thread that waits in `LoopThread.run`, and the functions to run on it meanwhile."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._orders: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()

    def finished(self, _: object) -> None:
        self._orders.put(None)

    def serve(self) -> None:
        """In the calling thread: run the requested functions until the work has ended."""
        while (order := self._orders.get()) is not None:
            function, reply = order
            try:
                outcome: Any = function()
            except Exception as error:
                self._loop.call_soon_threadsafe(_complete, reply, None, error)
            else:
                self._loop.call_soon_threadsafe(_complete, reply, outcome, None)

    def run(self, function: Callable[[], T]) -> Awaitable[T]:
        """In the loop: run a function in the calling thread and wait for its result."""
        reply: asyncio.Future[T] = self._loop.create_future()
        self._orders.put((function, reply))
        return reply


def _complete(reply: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if reply.done():
        return
    if error is None:
        reply.set_result(value)
    else:
        reply.set_exception(error)
