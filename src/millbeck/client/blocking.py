"""The clients for programs that have no event loop: each call runs the loop until it is answered.

    with Blocking() as blocking:
        consumer = blocking.make(lambda environment: Consumer(environment, {...}))
        ends = blocking.run(consumer.end_offsets(partitions))

Nothing happens between two calls: no metadata is refreshed and no heartbeat is sent, so this is for assigned
partitions, administration and producing, not for members of groups. What a broker has sent meanwhile waits in the
socket, which is what `consumer.range_reader` makes use of: while its caller works, the next answer is already under
way. One thread at a time may use it.
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
    """A loop of its own for clients that are called from ordinary code."""

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
        """What the coroutine returns, or raises."""
        return self._loop.run_until_complete(coroutine)

    def make(self, factory: Callable[[Environment], C]) -> C:
        """A client, made inside the loop as clients want it; `close` closes it."""

        async def make() -> C:
            return factory(self.environment)

        client = self.run(make())
        self._clients.append(client)
        return client

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def close(self) -> None:
        """Close the clients, the latest first, and the loop."""
        if self._loop.is_closed():
            return
        try:
            while self._clients:
                self.run(self._clients.pop().close())
        finally:
            self._loop.close()
