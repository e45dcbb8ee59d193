"""Use the asyncio clients from synchronous code: each call runs an event loop until it completes.

    with Blocking() as blocking:
        consumer = blocking.make(lambda environment: Consumer(environment, {...}))
        ends = blocking.run(consumer.end_offsets(partitions))

Nothing runs between two calls: no metadata is refreshed and no heartbeat is sent, so this suits assigned partitions,
admin calls and producing, but not group members. A response that arrives in between waits in the socket buffer;
`consumer.range_reader` relies on that: the next chunk is already requested while its caller works. Not thread-safe:
use it from one thread at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from millbeck.host import real_environment
from millbeck.kernel.environment import Environment


class Closable(Protocol):
    async def close(self) -> None: ...


T = TypeVar("T")
C = TypeVar("C", bound=Closable)


class Blocking:
    """A separate event loop for clients that are called from synchronous code."""

    def __init__(self, environment: Environment | None = None) -> None:
        self.environment = real_environment() if environment is None else environment
        self._loop = asyncio.new_event_loop()
        self._clients: list[Closable] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine; returns its result or raises its exception."""
        return self._loop.run_until_complete(coroutine)

    def make(self, factory: Callable[[Environment], C]) -> C:
        """Create a client inside the loop, as clients require; `close` closes it too."""

        async def make() -> C:
            return factory(self.environment)

        client = self.run(make())
        self._clients.append(client)
        return client

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def close(self) -> None:
        """Close the clients, the latest first, then the loop."""
        if self._loop.is_closed():
            return
        try:
            while self._clients:
                self.run(self._clients.pop().close())
        finally:
            self._loop.close()
