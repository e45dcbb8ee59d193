"""The asyncio transport for a protocol over TLS; it reads and writes through a `TlsStream`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from millbeck.host.tls_session import TlsSession
from millbeck.host.tls_stream import TlsStream
from millbeck.kernel.environment import Bytes

HIGH_WATER_BYTES: Final = 64 << 10


class TlsTransport(asyncio.Transport):
    """Calls ``pause_writing`` above the high-water mark, and ``resume_writing`` once everything is sent."""

    def __init__(
        self,
        socket_transport: asyncio.Transport,
        stream: TlsStream,
        session: TlsSession,
        protocol: asyncio.BaseProtocol,
    ) -> None:
        self.stream = stream
        self._socket_transport = socket_transport
        self._session = session
        self._protocol = protocol
        self._high_water_bytes = HIGH_WATER_BYTES
        self._is_paused = False
        stream.on_drained(self._drained)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """``peercert_der``, ``ssl_object`` and ``cipher`` are those of the TLS connection."""
        if name == "ssl_object":
            return self._session.ssl_object
        if name == "sslcontext":
            return self._session.ssl_object.context
        if name == "cipher":
            return self._session.ssl_object.cipher()
        return self._socket_transport.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    # writing

    def write(self, data: Bytes) -> None:
        self.stream.send([bytes(data)])
        self._look_at_size()

    def writelines(self, list_of_data: Iterable[Bytes]) -> None:
        self.stream.send([bytes(data) for data in list_of_data])
        self._look_at_size()

    def _look_at_size(self) -> None:
        if not self._is_paused and self.stream.queued_bytes > self._high_water_bytes:
            self._is_paused = True
            self._protocol.pause_writing()

    def _drained(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._protocol.resume_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_water_bytes = HIGH_WATER_BYTES if high is None else high

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return 0, self._high_water_bytes

    def get_write_buffer_size(self) -> int:
        return self.stream.queued_bytes

    def can_write_eof(self) -> bool:
        return False

    # reading

    def is_reading(self) -> bool:
        return self.stream.is_reading and not self.is_closing()

    def pause_reading(self) -> None:
        self.stream.pause_reading()

    def resume_reading(self) -> None:
        self.stream.resume_reading()

    # end

    def is_closing(self) -> bool:
        return self.stream.is_closing or self._socket_transport.is_closing()

    def close(self) -> None:
        """Send what was written, then close_notify, and close."""
        if not self.is_closing():
            self.stream.close_when_drained()

    def abort(self) -> None:
        self._socket_transport.abort()
