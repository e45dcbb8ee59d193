"""Scheduling of TLS handshakes: in small shares of the event loop's time or on threads, with a deadline of 10 s.

A handshake takes 0.2 to 0.7 ms of CPU time. When a thousand clients connect at once after a restart, handshakes in
order of arrival would block the event loop for half a second. So each iteration of the event loop does 2 ms of them.
With an RSA key above 2048 bits, one handshake takes 3 ms and more, and OpenSSL releases the GIL in it: those run on
worker threads, two at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from millbeck.host.threads import HostThreads

if TYPE_CHECKING:
    from millbeck.host.tls_protocol import TlsProtocol

SECONDS_PER_ITERATION: Final = 0.002
DEADLINE_S: Final = 10.0
ON_THREADS_MAX: Final = 2
_RETRY_S: Final = 0.01


class Handshakes:
    """The handshakes of one event loop."""

    def __init__(self, threads: HostThreads) -> None:
        self.loop = asyncio.get_running_loop()
        self._threads = threads
        self._ready: deque[TlsProtocol] = deque()
        self._waiting_for_thread: deque[TlsProtocol] = deque()
        self._on_threads = 0
        self._deadlines: dict[TlsProtocol, float] = {}
        """The pending handshakes, in the order of their deadlines, since all have the same timeout."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_scheduled = False
        self._left_s = SECONDS_PER_ITERATION
        """The remaining handshake time of this iteration."""

    def began(self, connection: TlsProtocol) -> None:
        self._deadlines[connection] = self.loop.time() + DEADLINE_S
        if self._timer is None:
            self._timer = self.loop.call_later(DEADLINE_S, self._expire)

    def ended(self, connection: TlsProtocol) -> None:
        self._deadlines.pop(connection, None)

    def run_now(self, connection: TlsProtocol) -> bool:
        """Do a step at once if this iteration has time left and no handshake waits; otherwise the caller uses `ready`.

        Most steps run here: only in a burst of connections reading is paused and another iteration needed.
        """
        if connection.has_slow_key or self._ready or self._left_s <= 0.0:
            return False
        if not self._is_scheduled:
            self._is_scheduled = True
            self.loop.call_soon(self._run)
        began = self.loop.time()
        connection.step()
        self._left_s -= self.loop.time() - began
        return True

    def ready(self, connection: TlsProtocol) -> None:
        """Queue the next step of a connection's handshake; must not be called again before that step has run."""
        if connection.has_slow_key:
            self._waiting_for_thread.append(connection)
            self._start_threads()
            return
        self._ready.append(connection)
        if not self._is_scheduled:
            self._is_scheduled = True
            self.loop.call_soon(self._run)

    def _run(self) -> None:
        began = self.loop.time()
        until = began + SECONDS_PER_ITERATION
        while self._ready:
            connection = self._ready.popleft()
            connection.step()
            if self.loop.time() >= until:
                break
        self._left_s = until - self.loop.time()
        self._is_scheduled = bool(self._ready)
        if self._ready:
            self.loop.call_soon(self._run)

    def _start_threads(self) -> None:
        while self._waiting_for_thread and self._on_threads < ON_THREADS_MAX:
            connection = self._waiting_for_thread.popleft()
            if connection not in self._deadlines:
                continue
            try:
                done = self._threads.run(connection.session.handshake)
            except BlockingIOError:
                self._waiting_for_thread.appendleft(connection)
                if not self._on_threads:
                    self.loop.call_later(_RETRY_S, self._start_threads)
                return
            self._on_threads += 1
            done.add_done_callback(partial(self._thread_ended, connection))

    def _thread_ended(self, connection: TlsProtocol, done: asyncio.Future[bool]) -> None:
        self._on_threads -= 1
        connection.on_step_done(done)
        self._start_threads()

    def _expire(self) -> None:
        self._timer = None
        now = self.loop.time() + 1e-6  # timers may be early by the clock's resolution
        for connection, deadline in list(self._deadlines.items()):
            if deadline > now:
                self._timer = self.loop.call_at(deadline, self._expire)
                return
            del self._deadlines[connection]
            connection.expired()
