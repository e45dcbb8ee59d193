"""What asyncio holds of a connection.

A `Connection` is compiled, and a compiled class cannot inherit from one of asyncio's; this one does, and passes on.
"""

from __future__ import annotations

import asyncio

from millbeck.server.connection import Connection


class ConnectionProtocol(asyncio.BufferedProtocol):
    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._connection.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.buffer_updated(nbytes)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        """The outlet does its own flow control."""

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)
