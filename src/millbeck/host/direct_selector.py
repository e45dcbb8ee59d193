"""An epoll selector that runs the callback of a ready file descriptor itself, instead of returning it to the event
loop.

asyncio's event loop adds each ready descriptor to its callback queue and runs it in a further iteration: several
microseconds of interpreted code for every request, and for every refill of a socket's send buffer during a long
response. This selector runs the callback as soon as the descriptor is ready, and `select` polls again by itself until
there is work that only the event loop can do: a queued callback, a timer that is due, a stop. For asyncio it is an
ordinary selector that never reports a ready descriptor.
"""

from __future__ import annotations

import select
from collections.abc import Mapping
from selectors import EVENT_READ, EVENT_WRITE, SelectorKey
from time import monotonic
from typing import Any, Final

_EPOLLIN: Final = 0x001
_EPOLLOUT: Final = 0x004
"""Epoll's flags, as numbers, since the module is also loaded where `select` lacks them. Errors and hang-ups call both
callbacks.
"""
_NOTHING: Final[list[tuple[SelectorKey, int]]] = []


class DirectSelector:
    def __init__(self, loop: Any) -> None:
        """``loop`` is an asyncio event loop; its callback queue and timers are read from its private fields."""
        self._loop = loop
        self._epoll = select.epoll()
        self._keys: dict[int, SelectorKey] = {}
        self.ready_count = 0

    # Selector interface for asyncio.

    def register(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        descriptor = _descriptor(fileobj)
        if descriptor in self._keys:
            raise KeyError(f"{fileobj!r} (descriptor {descriptor}) is already registered")
        self._epoll.register(descriptor, _epoll_events(events))
        key = self._keys[descriptor] = SelectorKey(fileobj, descriptor, events, data)
        return key

    def unregister(self, fileobj: Any) -> SelectorKey:
        descriptor = _descriptor(fileobj)
        key = self._keys.pop(descriptor)
        try:
            self._epoll.unregister(descriptor)
        except OSError:
            pass  # closed before it was unregistered: epoll has removed it already
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        descriptor = _descriptor(fileobj)
        before = self._keys[descriptor]
        if before.events != events:
            self._epoll.modify(descriptor, _epoll_events(events))
        key = self._keys[descriptor] = SelectorKey(before.fileobj, descriptor, events, data)
        return key

    def get_key(self, fileobj: Any) -> SelectorKey:
        return self._keys[_descriptor(fileobj)]

    def get_map(self) -> Mapping[int, SelectorKey]:
        return self._keys

    def serves_one_event(self) -> bool:
        return self.ready_count <= 1

    def may_rest(self) -> bool:
        """Whether the event loop has no other work than the descriptor that is being served."""
        return self.ready_count <= 1 and not self._loop._ready

    def close(self) -> None:
        self._epoll.close()
        self._keys.clear()

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        loop = self._loop
        epoll = self._epoll
        wait = -1.0 if timeout is None else timeout
        while True:
            try:
                ready = epoll.poll(wait, max(len(self._keys), 1))
            except InterruptedError:
                ready = []
            self.ready_count = len(ready)
            for descriptor, events in ready:
                self._run(descriptor, events)
            if not ready or loop._ready or loop._stopping:
                return _NOTHING
            timers = loop._scheduled
            wait = -1.0
            if timers:
                wait = timers[0]._when - monotonic()
                if wait <= 0:
                    return _NOTHING

    def _run(self, descriptor: int, events: int) -> None:
        """Call the reader before the writer, as asyncio does; either may cancel the other."""
        key = self._keys.get(descriptor)
        if key is None:
            return
        reader, writer = key.data
        if reader is not None and events & ~_EPOLLOUT:
            self._call(reader)
        if writer is not None and events & ~_EPOLLIN:
            self._call(writer)

    def _call(self, handle: Any) -> None:
        if handle._cancelled:
            return
        try:
            handle._callback(*handle._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._loop.call_exception_handler(
                {"message": f"Exception in callback {handle._callback!r}", "exception": error, "handle": handle}
            )


def _descriptor(fileobj: Any) -> int:
    descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
    if descriptor < 0:
        raise ValueError(f"not an open descriptor: {fileobj!r}")
    return descriptor


def _epoll_events(events: int) -> int:
    return (_EPOLLIN if events & EVENT_READ else 0) | (_EPOLLOUT if events & EVENT_WRITE else 0)
