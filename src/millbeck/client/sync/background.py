"""The common part of the synchronous clients: the thread with the event loop, and calls into it."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from millbeck.client.errors import ClientClosed, WrongEventLoop
from millbeck.host.loop_thread import STARTING, Caller, LoopThread

T = TypeVar("T")

log = logging.getLogger(__name__)

EXIT_SECONDS_MAX: Final = 5.0
"""How long a program that ends waits for each client that it did not close."""

_open: Final[dict[Background, None]] = {}
"""The clients whose threads run."""


class Background:
    """The base class of the synchronous clients. The thread starts with the first call.

    A client that is still open when the program ends is closed then: a producer sends what it has, a member of a group
    leaves it.
    """

    def __init__(self) -> None:
        self._thread: LoopThread | None = None
        self._is_closed = False

    def _loop_thread(self) -> LoopThread:
        """The thread, which is started by the first call; raises `ClientClosed` after `close`, and `WrongEventLoop` in
        a fork."""
        thread = self._thread
        name = type(self).__name__
        if self._is_closed:
            raise ClientClosed(f"the {name} is closed")
        if thread is None:
            with STARTING:
                thread = self._thread = self._thread or LoopThread(f"millbeck {name}")
                _open[self] = None
        if thread.is_fork:
            raise WrongEventLoop(
                f"this {name} was started before a fork, and its thread exists only in the parent "
                "process: create one in each process"
            )
        return thread

    def _close_at_exit(self) -> None:
        """Close within `EXIT_SECONDS_MAX`."""
        raise NotImplementedError

    def _call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function in the loop and wait for its result."""
        return self._call_with(lambda _: work())

    def _call_with(self, work: Callable[[Caller], Coroutine[Any, Any, T]]) -> T:
        thread = self._loop_thread()
        if thread.is_caller:
            raise WrongEventLoop(
                f"a callback in the thread of the event loop cannot wait for this {type(self).__name__}: hand the work "
                "to another thread"
            )
        return thread.run(work)

    def _call_plain(self, function: Callable[[], T]) -> T:
        """Run a plain function in the loop."""

        async def work() -> T:
            return function()

        return self._call(work)

    def _close(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._close_with(lambda _: work())

    def _close_with(self, work: Callable[[Caller], Coroutine[Any, Any, None]]) -> None:
        _open.pop(self, None)
        if self._is_closed:
            return
        thread = self._thread
        if thread is not None and not thread.is_fork:
            try:
                self._call_with(work)
            finally:
                self._is_closed = True
                thread.stop()
        self._is_closed = True


def _close_all() -> None:
    for client in list(_open):
        try:
            client._close_at_exit()
        except Exception as error:
            log.warning("a %s that the program did not close could not be closed: %s", type(client).__name__, error)


atexit.register(_close_all)
