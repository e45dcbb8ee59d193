"""The asyncio protocol of a connection.

A `Connection` is compiled, and a compiled class cannot inherit from an asyncio class; this class does and delegates.
"""

from __future__ import annotations

import asyncio

from millbeck.server.network.connection import Connection


class ConnectionProtocol(asyncio.BufferedProtocol):
    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.connection_made(transport)

    def handshake_completed(self, certificate: bytes | None) -> None:
        """The TLS handshake is complete; gets the client's certificate as DER, None without one."""
        self._connection.handshake_completed(certificate)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._connection.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.buffer_updated(nbytes)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        """The stream does its own flow control."""

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)
