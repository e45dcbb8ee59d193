"""Stream of a TLS connection: encrypts what is sent, decrypts what is received, on top of a `SocketStream`.

Output. Parts wait as plaintext, file slices as slices, until the socket has accepted everything before them: then up to
256 KiB are encrypted and passed to the socket at once. So a slow peer costs the memory of one such write, and the
responses of an event batch, which arrive in one ``send``, are encrypted together.

Input. All records of one read are decrypted into the owner's buffer before it is called, so that the requests of a
read are handled together. What arrives while reading is paused stays in OpenSSL's buffer, at most one read of it.

Nothing is sent or delivered before `secured`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Final

from millbeck.host.part_queue import FileSliceTruncated, SendQueue, release_slices
from millbeck.host.socket_stream import TURN_BYTES_MAX, SocketStream
from millbeck.host.tls_session import TlsSession, failure_of
from millbeck.kernel.environment import Part
from millbeck.kernel.tls import TlsFailed

WRITE_BYTES_MAX: Final = 256 << 10
CONTROL_BYTES_MAX: Final = 64 << 10
"""The maximum bytes of responses to key updates that wait for a peer that does not read them."""
_COPY_EVERY_SLICE: Final = 1 << 62


class TlsStream:
    __slots__ = (
        "_buffer_updated",
        "_drained",
        "_get_buffer",
        "_is_busy",
        "_is_over",
        "_is_reading",
        "_is_secured",
        "_on_end",
        "_queue",
        "_session",
        "_soon",
        "_transport",
        "_wire",
        "error",
        "is_closing",
    )

    def __init__(
        self, transport: asyncio.Transport, wire: SocketStream, session: TlsSession, on_end: Callable[[], None]
    ) -> None:
        """``wire`` sends and receives ciphertext over ``transport``; ``on_end`` is called when the peer has sent
        close_notify.
        """
        self._transport = transport
        self._wire = wire
        self._session = session
        self._on_end: Callable[[], None] | None = on_end
        self._queue = SendQueue()
        self._get_buffer: Callable[[int], memoryview] | None = None
        self._buffer_updated: Callable[[int], None] | None = None
        self._drained: Callable[[], None] | None = None
        self._soon: asyncio.Handle | None = None
        self._is_reading = True
        self._is_secured = False
        self._is_busy = False  # something waits to be sent
        self._is_over = False
        self.is_closing = False
        self.error: TlsFailed | None = None
        """The error of the TLS record layer that ended the connection: a modified record, or an alert of the peer."""
        wire.on_drained(self._continue)

    @property
    def queued_bytes(self) -> int:
        return self._queue.size_bytes + self._wire.queued_bytes

    def secured(self) -> None:
        """The handshake is complete: send and deliver what was waiting for it."""
        self._is_secured = True
        if self._queue:
            self._is_busy = True
            self._continue()
        if self._is_reading:
            self._deliver()

    # output

    def send(self, parts: Sequence[Part]) -> None:
        if self._is_over or self.is_closing or self._transport.is_closing():
            release_slices(parts)
            return
        self._queue.extend(parts)
        if self._is_secured and not self._is_busy:
            self._pump()

    def _pump(self) -> None:
        """Encrypt and send until the queue is empty, the socket accepts no more, or the connection's share of this
        iteration is used up.
        """
        queue, wire = self._queue, self._wire
        share = TURN_BYTES_MAX
        try:
            while queue and share > 0 and not wire.queued_bytes:
                before = queue.size_bytes
                buffers = queue.take(min(share, WRITE_BYTES_MAX), copied_slice_bytes_max=_COPY_EVERY_SLICE)
                share -= before - queue.size_bytes
                wire.send(self._session.encrypt(buffers))
        except (OSError, FileSliceTruncated):
            self._fail()
            return
        waits = wire.queued_bytes > 0
        self._is_busy = waits or bool(queue)
        if queue and not waits and self._soon is None:
            self._soon = asyncio.get_running_loop().call_soon(self._continue)

    def _continue(self) -> None:
        """Send more: the socket has accepted all earlier data, or a new iteration of the event loop has begun."""
        self._soon = None
        if self._is_over or not self._is_busy:
            return
        self._pump()
        if self._is_busy or self._is_over:
            return
        if self.is_closing:
            self._close()
        elif self._drained is not None:
            self._drained()

    def send_control(self) -> None:
        """Send OpenSSL's own output: handshake messages, alerts, responses to key updates."""
        data = self._session.output()
        if not data:
            return
        if self._wire.queued_bytes > WRITE_BYTES_MAX + CONTROL_BYTES_MAX:
            self._fail()
        else:
            self._wire.send([data])

    def resume_writing(self) -> None:
        """Nothing to do: the transport's own buffer is never used."""

    def on_drained(self, callback: Callable[[], None]) -> None:
        self._drained = callback

    # input

    def begin_reading(self, get_buffer: Callable[[int], memoryview], buffer_updated: Callable[[int], None]) -> None:
        self._get_buffer = get_buffer
        self._buffer_updated = buffer_updated

    def received(self, data: memoryview) -> None:
        """Ciphertext has arrived; ``data`` is not used after this call."""
        self._session.lend(data)
        try:
            self._deliver()
        finally:
            self._session.take_back()

    def _deliver(self) -> None:
        session = self._session
        while self._is_reading and not self._is_over and session.has_input:
            assert self._get_buffer is not None
            assert self._buffer_updated is not None
            try:
                count = session.read(self._get_buffer(-1))
            except ssl.SSLError as error:
                self.error = failure_of(error)
                self.send_control()
                self._fail()
                return
            if count == 0:
                break
            self._buffer_updated(count)
        if self._is_over:
            return
        self.send_control()
        if session.is_ended and self._is_reading and self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end()

    def pause_reading(self) -> None:
        self._is_reading = False
        if self._is_secured:
            self._wire.pause_reading()

    def resume_reading(self) -> None:
        if self._is_over or self._is_reading:
            return
        self._is_reading = True
        if self._is_secured:
            self._wire.resume_reading()
            if self._session.has_input or self._session.is_ended:
                # Deferred, because the caller is in the middle of an event batch.
                asyncio.get_running_loop().call_soon(self._deliver)

    @property
    def is_reading(self) -> bool:
        return self._is_reading

    def receive(self, buffer: memoryview) -> int:
        """Always 0: all data that has arrived was delivered already."""
        return 0

    def expect_long_requests(self) -> None:
        self._wire.expect_long_requests()

    # end

    def close_when_drained(self) -> None:
        self.is_closing = True
        if self._is_secured:
            if not self._is_busy:
                self._close()
        elif not self._queue:
            self._transport.abort()  # there is nothing to complete a handshake for

    def _close(self) -> None:
        if self._is_over or self._transport.is_closing():
            return
        self._wire.send([self._session.close_notify()])
        self._wire.close_when_drained()

    def closed(self) -> None:
        self._is_over = True
        self._queue.clear()
        self._wire.closed()
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        # Without these references a closed connection is freed at once, without the garbage collector.
        self._get_buffer = self._buffer_updated = self._drained = self._on_end = None

    def _fail(self) -> None:
        self.closed()
        self._transport.abort()
