"""The lifecycle of producer, consumer, share consumer and admin client: started by their first call, and bound to its
event loop.

A client can be created with or without a running event loop. Its first call starts it in the running loop. From then on
it belongs to this loop and this process, since its sockets and tasks cannot be used in another. A call from elsewhere
raises `WrongEventLoop` with the reason, instead of hanging.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, cast

from millbeck.client.config import Value
from millbeck.client.errors import WrongEventLoop
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig

_NOT_STARTED: Final = object()


class LoopBound:
    """The base class of the clients; a subclass implements `_start`, which may use the running loop."""

    _loop: asyncio.AbstractEventLoop
    """The event loop of the client; set before `_start`."""

    def __init__(self, environment: Environment | None) -> None:
        self._given_environment = environment
        self._bound_to: object = _NOT_STARTED
        """The event loop in which the client was started."""
        self._process_id = -1

    @property
    def is_started(self) -> bool:
        return self._bound_to is not _NOT_STARTED

    @property
    def environment(self) -> Environment:
        """The environment (network, clock, randomness): this machine's unless another one was passed to the
        constructor."""
        if self._given_environment is None:
            from millbeck.host import real_environment

            self._given_environment = real_environment()
        return self._given_environment

    def _start(self) -> None:
        raise NotImplementedError

    def _enter(self) -> None:
        """Start with the first call; raise `WrongEventLoop` for a call from another loop or process."""
        running = asyncio._get_running_loop()
        if running is self._bound_to:
            return
        name = type(self).__name__
        process_id = _process_id()
        if process_id != self._process_id and self.is_started:
            raise WrongEventLoop(
                f"this {name} was started in process {self._process_id}, but process {process_id} is a fork of "
                "it: create the client after the fork"
            )
        if running is None and self.is_started and not (self._loop.is_running() or self._loop.is_closed()):
            # Between two runs of its own loop, which `blocking` does.
            return
        if running is None:
            raise WrongEventLoop(
                f"{name} needs a running event loop: call it from a coroutine, or use millbeck.client.sync.{name}"
            )
        if not self.is_started:
            self._process_id = process_id
            self._loop = running
            self._bound_to = running
            try:
                self._start()
            except BaseException:
                # `close` has nothing to end, and must not replace the error by one of its own.
                self._bound_to = _NOT_STARTED
                raise
            return
        if self._loop.is_closed():
            raise WrongEventLoop(
                f"this {name} belongs to an event loop that is closed, that of an earlier asyncio.run: create a client "
                "inside each asyncio.run"
            )
        raise WrongEventLoop(
            f"this {name} belongs to another event loop: use it in the loop of its first call only, or use "
            f"millbeck.client.sync.{name} from several threads"
        )


def _process_id() -> int:
    from millbeck.host.process import process_id

    return process_id()


def merged(settings: Mapping[str, object] | None, named: Mapping[str, Value]) -> dict[str, Value]:
    """Merge settings and keyword arguments: ``linger_ms=5`` is ``{"linger.ms": 5}``.

    The values of a dictionary are checked when they are parsed: type checkers take mixed ones for objects.
    """
    together = cast("dict[str, Value]", dict(settings or {}))
    for name, value in named.items():
        key = name.replace("_", ".")
        if key in together:
            raise InvalidConfig(f"{key} is given twice, in the settings and as {name}=")
        together[key] = value
    return together
