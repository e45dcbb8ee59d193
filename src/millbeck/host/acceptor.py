"""Accepts the connections of one listening socket on asyncio's event loop, and can stop for a while.

While it is paused, connections wait in the kernel's queue, which bounds them; what is accepted costs a protocol and a
transport. asyncio's own server cannot be paused, and accepts a whole turn's connections before their protocols see the
first of them. Here the protocol is made before the next connection is accepted, so that what counts them can pause.

With no descriptor left nothing is accepted for a second; connections wait meanwhile.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Final

ACCEPTED_PER_TURN_MAX: Final = 50
RETRY_S: Final = 1.0
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

log = logging.getLogger(__name__)


class Acceptor:
    def __init__(self, listening: socket.socket, make_protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        """``listening`` does not block and listens already; it belongs to the acceptor."""
        self._socket = listening
        self._make_protocol = make_protocol
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[None]] = set()
        self._is_paused = False
        self._is_closed = False
        self._watch()

    def pause(self) -> None:
        if not self._is_paused and not self._is_closed:
            self._is_paused = True
            self._loop.remove_reader(self._socket)

    def resume(self) -> None:
        if self._is_paused and not self._is_closed:
            self._is_paused = False
            self._watch()

    def close(self) -> None:
        """Stop listening; open connections stay."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._socket)
            self._socket.close()

    def _watch(self) -> None:
        self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_PER_TURN_MAX):
            if self._is_paused or self._is_closed:
                return
            try:
                accepted, _address = self._socket.accept()
            except OSError as error:
                # The others are nobody left, or errors of the network that concern the connection alone.
                if error.errno in _EXHAUSTED:
                    self._wait_for_descriptors(error)
                return
            self._begin(accepted)

    def _wait_for_descriptors(self, error: OSError) -> None:
        log.error("no connection can be accepted: %s; see the limit of open files (ulimit -n)", error.strerror)
        self._loop.remove_reader(self._socket)
        self._loop.call_later(RETRY_S, self._watch_again)

    def _watch_again(self) -> None:
        if not self._is_paused and not self._is_closed:
            self._watch()

    def _begin(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        try:
            accepted.getpeername()
        except OSError:
            accepted.close()  # the peer has gone: nobody would get a reply, and its address is not known any more
            return
        try:
            protocol = self._make_protocol()
        except BaseException:
            accepted.close()
            raise
        task = self._loop.create_task(self._connect(accepted, protocol))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, accepted: socket.socket, protocol: asyncio.BaseProtocol) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, accepted)
        except OSError:
            accepted.close()
