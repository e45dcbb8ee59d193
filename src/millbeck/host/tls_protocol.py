"""The asyncio protocol between a socket's transport and an application protocol over TLS: first the handshake, then
encryption in both directions.

States, in order: shaking hands (`Handshakes` decides when each step runs; reading is paused until it did), secured (the
`TlsStream` handles all data), lost. A failed handshake sends its alert and half-closes, and the connection is closed
when the peer has closed too, or after a second: closing at once would discard an alert that the peer has not read yet,
so the peer could not report the reason.

A server's protocol gets ``connection_made`` as soon as the connection is accepted, so that connections in their
handshake count against its limits, and then the peer's certificate by ``handshake_completed``, if it has that method.
A client's protocol gets both when the handshake is complete.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, cast

from millbeck.host.socket_stream import SocketStream
from millbeck.host.tls_handshakes import DEADLINE_S, Handshakes
from millbeck.host.tls_session import TlsSession, failure_of, may_be_tls
from millbeck.host.tls_stream import TlsStream
from millbeck.host.tls_transport import TlsTransport
from millbeck.kernel.environment import SocketBuffers
from millbeck.kernel.tls import TlsContext, TlsFailed, TlsFailure

CIPHERTEXT_BYTES: Final = 256 << 10
HANDSHAKE_BYTES_MAX: Final = 16 << 10
"""The read size during the handshake of a connection."""
LINGER_S: Final = 1.0


class TlsBuffers:
    """The buffers that all TLS connections of an event loop share: each is used within one call only."""

    def __init__(self) -> None:
        self.ciphertext = memoryview(bytearray(CIPHERTEXT_BYTES))
        self.plaintext = memoryview(bytearray(CIPHERTEXT_BYTES))
        """A buffer for protocols that have none of their own."""


class TlsProtocol(asyncio.BufferedProtocol):
    def __init__(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        tls: TlsContext,
        *,
        handshakes: Handshakes,
        buffers: TlsBuffers,
        is_linux: bool,
        socket_buffers: SocketBuffers,
        server_name: str | None = None,
    ) -> None:
        """``server_name`` is the host that a client connects to, None for a server."""
        self.session = TlsSession(tls.context, server_name=server_name)
        self.has_slow_key = tls.has_slow_key
        self.secured: asyncio.Future[tuple[TlsTransport, asyncio.BaseProtocol]] | None = None
        """The result of a client's connect: its transport and protocol, or the error."""
        if server_name is not None:
            self.secured = asyncio.get_running_loop().create_future()
        self._make_protocol = make_protocol
        self._protocol: asyncio.BaseProtocol | None = None
        self._handshakes = handshakes
        self._buffers = buffers
        self._is_linux = is_linux
        self._socket_buffers = socket_buffers
        self._is_secured = False
        self._is_busy = False  # a step of the handshake is due or running
        self._is_paused = False  # reading, because a step could not run at once
        self._is_first = True
        self._early: list[bytes] = []
        self._failure: TlsFailed | None = None
        self._transport: asyncio.Transport | None = None
        self._tls_transport: TlsTransport | None = None
        self._wire: SocketStream | None = None
        self._stream: TlsStream | None = None

    # callbacks of the socket's transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # asyncio's socket wrapper lacks the send methods, see `HostNetwork.connection_stream`.
        connected = transport.get_extra_info("socket")._sock
        wire = SocketStream(transport, connected, is_linux=self._is_linux, buffers=self._socket_buffers)
        self._wire = wire
        stream = self._stream = TlsStream(transport, wire, self.session, self._ended)
        protocol = self._protocol = self._make_protocol()
        self._tls_transport = TlsTransport(transport, stream, self.session, protocol)
        if isinstance(protocol, asyncio.BufferedProtocol):
            stream.begin_reading(cast("Callable[[int], memoryview]", protocol.get_buffer), protocol.buffer_updated)
        else:
            stream.begin_reading(self._get_plaintext_buffer, self._plaintext_updated)
        wire.begin_reading(self.get_buffer, self.buffer_updated)
        self._handshakes.began(self)
        if self.secured is None:
            protocol.connection_made(self._tls_transport)
        else:
            self._step()

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._buffers.ciphertext
        return buffer if self._is_secured else buffer[:HANDSHAKE_BYTES_MAX]

    def buffer_updated(self, nbytes: int) -> None:
        received = self._buffers.ciphertext[:nbytes]
        if self._is_secured:
            assert self._stream is not None
            self._stream.received(received)
        elif self._failure is not None:
            pass  # what the peer had sent before it learns of the failure
        elif self._is_first and not may_be_tls(received[0]):
            self._fail(TlsFailed(TlsFailure.NOT_TLS, "the peer does not speak TLS"))
        elif self._is_busy:
            # The transport may deliver once more before reading is paused. A thread may be using the session now.
            self._early.append(bytes(received))
        else:
            self._is_first = False
            self.session.receive(received)
            self._step()

    def eof_received(self) -> bool:
        if not self._is_secured:
            self._failure = self._failure or TlsFailed(
                TlsFailure.DISCONNECTED, "the peer closed the connection during the TLS handshake"
            )
            return False
        assert isinstance(self._protocol, asyncio.Protocol | asyncio.BufferedProtocol)
        self._protocol.eof_received()
        return False  # also without a close_notify: the length of a Kafka frame shows whether it is complete

    def connection_lost(self, exc: Exception | None) -> None:
        self._handshakes.ended(self)
        assert self._stream is not None
        error = self._failure or self._stream.error or exc
        if exc is not None and error is exc and not self._is_secured:
            error = TlsFailed(TlsFailure.DISCONNECTED, "the peer closed the connection during the TLS handshake")
        self._stream.closed()
        protocol, self._protocol = self._protocol, None
        self._tls_transport = None
        if self.secured is not None and not self._is_secured:
            if not self.secured.done():
                self.secured.set_exception(error or ConnectionResetError())
        elif protocol is not None:
            protocol.connection_lost(error)

    # handshake, called by `Handshakes`

    def _step(self) -> None:
        assert self._wire is not None
        self._is_busy = True
        if self._handshakes.run_now(self):
            return
        self._is_paused = True
        self._wire.pause_reading()
        self._handshakes.ready(self)

    def step(self) -> None:
        """Do one step of the handshake, on the event loop."""
        if self._protocol is None or self._failure is not None:
            return
        try:
            is_complete = self.session.handshake()
        except (ssl.SSLError, ssl.CertificateError) as error:
            self._fail(failure_of(error))
        else:
            self._stepped(is_complete)

    def on_step_done(self, done: asyncio.Future[bool]) -> None:
        """Called when a thread has finished a step of the handshake."""
        error = done.exception()
        if self._protocol is None or self._failure is not None:
            return
        if isinstance(error, ssl.SSLError | ssl.CertificateError):
            self._fail(failure_of(error))
        elif error is not None:
            self._fail(TlsFailed(TlsFailure.PROTOCOL, str(error)))
        else:
            self._stepped(done.result())

    def expired(self) -> None:
        """The deadline of the handshake has passed."""
        self._fail(TlsFailed(TlsFailure.TIMEOUT, f"the TLS handshake took longer than {DEADLINE_S:g} s"))

    def _stepped(self, is_complete: bool) -> None:
        assert self._wire is not None
        assert self._stream is not None
        self._is_busy = False
        self._stream.send_control()
        for received in self._early:
            self.session.receive(received)
        if is_complete:
            self._early.clear()
            self._complete()
        elif self._early:
            self._early.clear()
            self._step()
        elif self._is_paused:
            self._is_paused = False
            self._wire.resume_reading()

    def _complete(self) -> None:
        assert self._stream is not None
        assert self._wire is not None
        assert self._tls_transport is not None
        protocol = self._protocol
        assert protocol is not None
        self._is_secured = True
        self._handshakes.ended(self)
        if self.secured is not None:
            protocol.connection_made(self._tls_transport)
            if not self.secured.done():
                self.secured.set_result((self._tls_transport, protocol))
        handshake_completed = getattr(protocol, "handshake_completed", None)
        if handshake_completed is not None:
            handshake_completed(self.session.certificate())
        if self._stream.is_reading:
            if self._is_paused:
                self._wire.resume_reading()
        elif not self._is_paused:
            self._wire.pause_reading()
        self._stream.secured()

    def _fail(self, failure: TlsFailed) -> None:
        if self._failure is not None or self._transport is None or self._transport.is_closing():
            return
        self._failure = failure
        self._handshakes.ended(self)
        assert self._wire is not None
        alert = b"" if failure.failure in (TlsFailure.NOT_TLS, TlsFailure.TIMEOUT) else self.session.output()
        if alert:
            self._wire.send([alert])
        if not alert or self._wire.queued_bytes or self._transport.is_closing():
            self._transport.abort()
            return
        self._transport.write_eof()
        self._wire.resume_reading()
        asyncio.get_running_loop().call_later(LINGER_S, self._transport.abort)

    # input

    def _ended(self) -> None:
        """The peer has sent close_notify."""
        protocol, transport = self._protocol, self._tls_transport
        if protocol is None or transport is None:
            return
        assert isinstance(protocol, asyncio.Protocol | asyncio.BufferedProtocol)
        if not protocol.eof_received():
            transport.close()

    def _get_plaintext_buffer(self, sizehint: int) -> memoryview:
        return self._buffers.plaintext

    def _plaintext_updated(self, nbytes: int) -> None:
        protocol = self._protocol
        if protocol is not None:
            assert isinstance(protocol, asyncio.Protocol)
            protocol.data_received(bytes(self._buffers.plaintext[:nbytes]))
