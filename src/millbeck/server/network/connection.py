"""One client connection: request frames in, replies out, in order.

Requests take effect and are answered in the order they arrive. A request is handled inside ``buffer_updated`` and
becomes a `Call`, which keeps its place in the queue of replies. While a produce waits for replicas after its append,
the connection handles further requests. During any other wait it handles none until the waiting request is answered: it
is *held* (`Call.hold`). A held connection is read until the next bytes arrive; they are kept for later, and reading is
paused. This detects a peer that disconnects while its fetch is delayed. Reading also pauses at 64 unanswered requests,
at 1 MiB of completed replies that cannot be sent yet, and while the peer does not read its replies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from millbeck.kernel.environment import ConnectionStream, FileSlice, Part
from millbeck.kernel.tls import TlsFailed
from millbeck.security.principal import ANONYMOUS, NoPrincipal, Principal
from millbeck.security.principal_builder import ClientIdentity
from millbeck.server.network.receive import SMALLEST_FRAME_BYTES, FrameReader, FrameTooLarge
from millbeck.server.network.request_metrics import AuthenticationStatistics, RequestTimes

if TYPE_CHECKING:
    from millbeck.server.network.listener import Listener

UNANSWERED_MAX: Final = 64
OUTPUT_HIGH_WATER_BYTES: Final = 1024 * 1024

LONG_REQUEST_BYTES: Final = 128 * 1024
READ_ON_BYTES_MAX: Final = 16 * 1024
READS_ON_MAX: Final = 4
READS_SKIPPED_MAX: Final = 63

AUTHENTICATION_SECONDS_MAX: Final = 30.0
UNAUTHENTICATED_BUFFER_BYTES: Final = 1024
"""The size of the first buffer of an incomplete frame before authentication. It is small, because anyone can open many
connections and send the beginning of a frame."""

log = logging.getLogger(__name__)


def release_slices(parts: Sequence[Part]) -> None:
    for part in parts:
        if isinstance(part, FileSlice):
            part.release()


def bytes_in_memory(parts: Sequence[Part]) -> int:
    return sum([len(part) for part in parts if not isinstance(part, FileSlice)])


class PendingReply:
    """A request's place in its connection's queue of replies; ``parts`` are set when it is answered."""

    __slots__ = ("parts", "times")

    def __init__(self) -> None:
        self.parts: Sequence[Part] | None = None
        self.times: RequestTimes | None = None
        """Set only when the stages of this request are timed."""


class Requests(Protocol):
    """The request handler of a connection, implemented by dispatch."""

    def handle(self, connection: Connection, frame: memoryview) -> None:
        """Handle one request; raises only `CloseConnection`, when the connection must be closed."""


class ListenerAuthentication(Protocol):
    """The authentication of the clients of a listener."""

    @property
    def frame_bytes_max(self) -> int:
        """The size limit of a frame until the client is authenticated."""

    @property
    def statistics(self) -> AuthenticationStatistics: ...

    def begin(self, connection: Connection) -> Requests:
        """The handler of a new connection's frames; it calls `Connection.authenticated` in the end."""


class CloseConnection(Exception):
    """The peer sent a request that cannot be answered; the connection is closed and the message logged."""


class Connection:
    """One client connection, see the module's docstring; `ConnectionProtocol` is its asyncio protocol."""

    __slots__ = (
        "_authenticates_by",
        "_batch",
        "_calls",
        "_frame_bytes_max",
        "_frame_started_at",
        "_held_bytes",
        "_is_closing",
        "_is_draining",
        "_is_held",
        "_is_holding",
        "_is_marked",
        "_is_paused",
        "_long_request_bytes",
        "_memory",
        "_on_lost",
        "_output_left_bytes",
        "_output_stalled_at",
        "_queued_bytes",
        "_reader",
        "_reads_skipped",
        "_reads_to_skip",
        "_requests",
        "_shared_buffer",
        "_stream",
        "_transport",
        "_unsent_bytes",
        "_waits_for_memory",
        "active_at",
        "client_software",
        "is_lost",
        "is_node",
        "listener",
        "local_host",
        "local_port",
        "muted_until_ms",
        "now",
        "number",
        "peer_host",
        "peer_port",
        "principal",
        "session",
        "wall_ms",
    )

    def __init__(self, listener: Listener, number: int) -> None:
        self.listener = listener
        self._requests = listener.requests
        self._shared_buffer = listener.shared_buffer
        self.now = listener.now
        self._batch = listener.turn
        self.number = number
        self.peer_host = ""
        self.peer_port = 0
        self.local_host = ""
        self.local_port = 0
        self.client_software = ("unknown", "unknown")
        self.principal: Principal = ANONYMOUS
        self.session: Any = None
        """The `sasl.authentication.Session` of a client that has logged in."""
        self.is_lost = False
        self.is_node = False
        """Whether another node has fetched on it as a replica: quotas do not apply."""
        self.active_at = 0.0
        self.wall_ms = -1
        """Wall clock time shared by the requests of one read; -1 until one of them needs it."""
        self._frame_started_at = 0.0
        self._output_stalled_at = 0.0
        self._output_left_bytes = 0
        self._unsent_bytes = 0  # bytes in memory of completed replies not yet passed to the stream
        self._queued_bytes = 0  # bytes in memory of replies in the stream that the peer has not read
        self._calls: list[PendingReply] = []
        self._is_held = False
        self._is_holding = False
        self.muted_until_ms = 0
        """The time until which the connection is muted because of a quota; 0 if it is not muted."""
        self._is_paused = False
        self._reads_skipped = 0
        self._reads_to_skip = 0
        self._is_marked = False
        self._is_draining = False
        self._is_closing = False
        self._stream: ConnectionStream | None = None
        self._transport: asyncio.Transport | None = None
        self._held_bytes = 0
        self._long_request_bytes = max(listener.buffers.receive_bytes, LONG_REQUEST_BYTES)
        self._waits_for_memory = False
        self._frame_bytes_max = listener.frame_bytes_max
        self._reader = FrameReader(listener.shared_buffer, listener.frame_bytes_max, self._frame)
        self._authenticates_by = 0.0  # 0: authenticated, or nothing to do for it
        self._memory = listener.memory
        if listener.authentication is not None:
            self._memory = listener.memory_before_login
            self._requests = listener.authentication.begin(self)
            self._authenticates_by = self.now() + AUTHENTICATION_SECONDS_MAX
            self.expect_frames(SMALLEST_FRAME_BYTES)
        self._on_lost: dict[Callable[[], None], None] | None = None

    # authentication

    def expect_frames(self, bytes_min: int) -> None:
        """Set the minimum frame size before authentication: SASL tokens without a Kafka header may be shorter."""
        authentication = self.listener.authentication
        assert authentication is not None
        self._frame_bytes_max = authentication.frame_bytes_max
        self._reader.limit_frames(bytes_min, self._frame_bytes_max, UNAUTHENTICATED_BUFFER_BYTES)

    def authenticated(self, principal: Principal, requests: Requests) -> None:
        """Pass the following frames to ``requests``."""
        self.principal = principal
        self._requests = requests
        self._authenticates_by = 0.0
        if self._memory is not self.listener.memory:
            self._memory.changed(self, self._held_bytes, 0)
            self._memory = self.listener.memory
            self._held_bytes, self._waits_for_memory = 0, False  # counted again before it reads on
        self._frame_bytes_max = self.listener.frame_bytes_max
        self._reader.limit_frames(SMALLEST_FRAME_BYTES, self._frame_bytes_max)

    def _too_large(self, size: FrameTooLarge) -> str:
        setting = "sasl.server.max.receive.size" if self._authenticates_by else "socket.request.max.bytes"
        return f"frame of {size} bytes (allowed: up to {setting}={self._frame_bytes_max})"

    # callbacks of the asyncio protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        local = transport.get_extra_info("sockname")
        if peer:
            self.peer_host, self.peer_port = peer[0], peer[1]
        if local:
            self.local_host, self.local_port = local[0], local[1]
        self.active_at = self.now()
        self._stream = self.listener.network.connection_stream(self._transport, buffers=self.listener.buffers)
        self._stream.on_drained(self._drained)
        self._stream.begin_reading(self.get_buffer, self.buffer_updated)
        refusal = self.listener.admit(self)
        if refusal:
            self.listener.refused(self, refusal)
            self._is_closing = True
            self._transport.abort()
            return
        if self.listener.principals is not None and self.listener.tls is None and self.listener.authentication is None:
            self._identify(ANONYMOUS, None)
        if not self._is_closing and not self.listener.is_open:
            # Held as well: a transport that has begun to read may deliver once more.
            self._is_held = True
            self._pause()

    def handshake_completed(self, certificate: bytes | None) -> None:
        """The TLS handshake is complete. With SASL the principal comes from the SASL authentication, not from the
        certificate."""
        tls = self.listener.tls
        assert tls is not None
        tls.statistics.succeeded += 1
        if self._transport is not None and self._transport.get_extra_info("ssl_object").session_reused:
            tls.statistics.resumed += 1
        if self.listener.authentication is not None:
            return
        try:
            named = tls.principal_of(certificate)
        except NoPrincipal as error:
            tls.login_failed(self.peer_host, str(error))
            self.close(str(error))
            return
        self._identify(named, certificate)
        if certificate is not None and not self._is_closing:
            tls.logged_in(self.principal, self.peer_host)

    def _identify(self, named: Principal, certificate: bytes | None) -> None:
        """Set the principal of a client that does not log in; closes the connection if it has none."""
        try:
            self.principal = self.principal_for(named, certificate=certificate)
        except NoPrincipal as error:
            if self.listener.tls is not None:
                self.listener.tls.login_failed(self.peer_host, str(error))
            self.close(str(error))

    def principal_for(
        self, named: Principal, *, mechanism: str = "", login: str = "", certificate: bytes | None = None
    ) -> Principal:
        """The principal of a client, by the listener's builder if it has one. Raises `NoPrincipal`."""
        builder = self.listener.principals
        if builder is None:
            return named
        if certificate is None and self.listener.tls is not None and self._transport is not None:
            certificate = self._transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return builder.build(
            ClientIdentity(
                principal=named,
                listener=self.listener.address.name,
                host=self.peer_host,
                mechanism=mechanism,
                login=login,
                certificate=certificate,
            )
        )

    def begin(self) -> None:
        """Start handling requests, including those that arrived before the listener was open."""
        self._is_held = False
        if self._is_paused:
            self._go_on()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer_for_receive()

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_closing:
            return
        batch = self._batch
        if not batch.begin():
            self._received(nbytes)
            return
        try:
            self._received(nbytes)
        finally:
            batch.end()
        if nbytes <= READ_ON_BYTES_MAX:
            self._read_more()

    def _read_more(self) -> None:
        """Read again if more bytes have arrived, without another iteration of the event loop, which costs more than a
        read.

        The number of such reads is bounded, because other connections wait meanwhile; when they find nothing, they are
        skipped with exponential backoff.
        """
        if self._reads_skipped < self._reads_to_skip:
            self._reads_skipped += 1
            return
        self._reads_skipped = 0
        stream, batch = self._stream, self._batch
        assert stream is not None
        for _ in range(READS_ON_MAX):
            if self._is_paused or self._is_held or self._is_closing or not batch.begin():
                return
            count = 0
            try:
                count = stream.receive(self._reader.buffer_for_receive())
                if count > 0:
                    self._received(count)
            finally:
                batch.end()
            if count <= 0:
                self._reads_to_skip = min(2 * self._reads_to_skip + 1, READS_SKIPPED_MAX)
                return
            self._reads_to_skip = 0

    def _received(self, nbytes: int) -> None:
        self.active_at = self.now()
        self.wall_ms = -1
        try:
            if self._is_held:
                self._reader.keep(nbytes)
                goes_on = False
            else:
                goes_on = self._reader.received(nbytes)
            self._shared_buffer.after_dispatch()
        except CloseConnection as refusal:
            self.close(str(refusal))
            return
        except FrameTooLarge as size:
            self.close(self._too_large(size))
            return
        self._frame_started_at = self.active_at if self._reader.is_inside_frame else 0.0
        self.listener.bytes_in.value += nbytes
        if self._reader.held_bytes != self._held_bytes and not self._account():
            goes_on = False
        if not goes_on and not self._is_paused and not self._watches_peer:
            self._pause()

    @property
    def _watches_peer(self) -> bool:
        """Whether to keep reading although the connection is held: with no bytes kept, this detects a peer that
        disconnects.
        """
        return (
            self._is_held
            and not self._reader.is_inside_frame
            and len(self._calls) < UNANSWERED_MAX
            and not self._is_draining
        )

    def _account(self) -> bool:
        """Report the size of this connection's receive buffer to `RequestMemory`; returns whether the connection may
        continue reading."""
        before, self._held_bytes = self._held_bytes, self._reader.held_bytes
        self._waits_for_memory = not self._memory.changed(self, before, self._held_bytes)
        if self._waits_for_memory:
            return False
        if self._reader.frame_bytes > self._long_request_bytes and self._stream is not None:
            self._stream.expect_long_requests()
        return True

    def read_on(self) -> None:
        """Resume reading at the end of the event batch, now that request memory is available again."""
        self._waits_for_memory = False
        self.mark_replies()

    def resume_writing(self) -> None:
        if self._stream is not None:
            self._stream.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if isinstance(exc, TlsFailed) and not self._is_closing:
            self._tls_failed(exc)
        self._is_closing = True
        if self._stream is not None:
            self._stream.closed()
        for call in self._calls:
            if call.parts is not None:
                release_slices(call.parts)
        self._calls.clear()
        self._reader.discard()
        self._memory.changed(self, self._held_bytes, 0)
        self._held_bytes = 0
        self.listener.replies.holds(self, 0)
        callbacks = self._on_lost or {}
        self._on_lost = None
        for callback in callbacks:
            callback()
        self.listener.forget(self)

    def _tls_failed(self, error: TlsFailed) -> None:
        tls = self.listener.tls
        if tls is not None:
            tls.statistics.failed[error.failure] += 1
            tls.login_failed(self.peer_host, str(error))
            log.info("TLS connection from %s:%s failed: %s", self.peer_host, self.peer_port, error)

    # requests

    def _frame(self, frame: memoryview) -> bool:
        self._requests.handle(self, frame)
        calls = self._calls
        if calls and (reply := calls[-1].parts) is not None:
            self._unsent_bytes += bytes_in_memory(reply)
        return (
            not (self._is_held or self._is_closing or self._is_draining)
            and len(calls) < UNANSWERED_MAX
            and self._unsent_bytes <= OUTPUT_HIGH_WATER_BYTES
        )

    def enqueue(self, call: PendingReply) -> None:
        self._calls.append(call)

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Register a callback for when the connection is lost; if that has happened, it is called at once."""
        if self.is_lost:
            callback()
        elif self._on_lost is None:
            self._on_lost = {callback: None}
        else:
            self._on_lost[callback] = None

    def forget_when_lost(self, callback: Callable[[], None]) -> None:
        if self._on_lost is not None:
            self._on_lost.pop(callback, None)

    def hold(self) -> None:
        self._is_held = self._is_holding = True

    def release_after_turn(self) -> None:
        self._is_holding = False
        self._is_held = self.muted_until_ms > 0

    def mute(self, until_ms: int) -> None:
        """Handle no further request until `unmute`; replies are sent as always (KIP-219)."""
        self.muted_until_ms = until_ms
        self._is_held = True

    def unmute(self) -> None:
        self.muted_until_ms = 0
        self._is_held = self._is_holding
        self.mark_replies()

    # replies

    def mark_replies(self) -> None:
        if not self._is_marked:
            self._is_marked = True
            self._batch.mark_replies(self)

    def flush_replies(self) -> None:
        """Send the completed replies at the head of the queue; called once per event batch."""
        self._is_marked = False
        if self.is_lost:
            return
        calls = self._calls
        parts: list[Part] = []
        timed: list[PendingReply] = []
        answered_count = 0
        for call in calls:
            if call.parts is None:
                break
            parts += call.parts
            answered_count += 1
            if call.times is not None:
                timed.append(call)
        del calls[:answered_count]
        self._unsent_bytes = 0
        if calls:
            self._unsent_bytes = sum([bytes_in_memory(call.parts) for call in calls if call.parts is not None])
        stream = self._stream
        assert stream is not None
        if parts:
            sending_at = self.now() if timed else 0.0
            stream.send(parts)
            for call in timed:
                if call.times is not None:
                    call.times.sent(sending_at, self.now())
            if stream.queued_bytes:
                self._queued(bytes_in_memory(parts))
        if self._is_draining and not calls:
            self._is_closing = True
            stream.close_when_drained()
        elif self._is_paused and not self._is_held and len(calls) < UNANSWERED_MAX:
            self._go_on()

    def _queued(self, added_bytes: int) -> None:
        """Report the bytes of unsent replies to `ReplyMemory`, and pause reading above the limit."""
        stream = self._stream
        assert stream is not None
        queued_bytes = stream.queued_bytes
        self._queued_bytes = min(self._queued_bytes + added_bytes, queued_bytes)
        self.listener.replies.holds(self, self._queued_bytes + self._unsent_bytes)
        if queued_bytes > OUTPUT_HIGH_WATER_BYTES and not self._is_paused:
            self._pause()

    def _go_on(self) -> None:
        """Handle the requests that were kept while the connection was held, then resume reading."""
        stream = self._stream
        assert stream is not None
        if self._is_closing or self._waits_for_memory or stream.queued_bytes > OUTPUT_HIGH_WATER_BYTES:
            return
        self.wall_ms = -1
        try:
            goes_on = self._reader.resume()
        except CloseConnection as refusal:
            self.close(str(refusal))
            return
        except FrameTooLarge as size:
            self.close(self._too_large(size))
            return
        self._frame_started_at = self.now() if self._reader.is_inside_frame else 0.0
        if self._reader.held_bytes != self._held_bytes and not self._account():
            return
        if self._is_paused and (goes_on or self._watches_peer):
            self._is_paused = False
            stream.resume_reading()

    def _pause(self) -> None:
        assert self._transport is not None
        assert self._stream is not None
        self._is_paused = True
        if not self._transport.is_closing():
            self._stream.pause_reading()

    def _drained(self) -> None:
        self._queued_bytes = 0
        self.listener.replies.holds(self, self._unsent_bytes)
        if self._is_paused and not self._is_held and len(self._calls) < UNANSWERED_MAX:
            self._go_on()

    # ends

    def close(self, reason: str) -> None:
        """Close at once and drop unsent replies."""
        if self._is_closing:
            return
        self._is_closing = True
        log.info("closing connection from %s:%s: %s", self.peer_host, self.peer_port, reason)
        if self._transport is not None:
            self._transport.abort()

    def close_when_answered(self) -> None:
        """Handle no more requests and close after the last reply (at shutdown)."""
        if self._is_closing:
            return
        self._is_draining = True
        if not self._is_paused:
            self._pause()
        self.mark_replies()

    def overdue(self, now: float, *, idle_max: float, frame_max: float, stall_max: float) -> str | None:
        """The reason to close this connection because of a timeout, or None; called every few seconds."""
        left_bytes = self._stream.queued_bytes if self._stream is not None else 0
        if not left_bytes or left_bytes < self._output_left_bytes or not self._output_stalled_at:
            self._output_stalled_at = now if left_bytes else 0.0
        self._output_left_bytes = left_bytes
        if left_bytes < self._queued_bytes:
            self._queued(0)
        if self._output_stalled_at and now - self._output_stalled_at > stall_max:
            return f"did not read its replies for {stall_max:g} s"
        if self._frame_started_at and not self._is_paused and now - self._frame_started_at > frame_max:
            return f"no progress inside a request for {frame_max:g} s"
        if self._authenticates_by and now > self._authenticates_by:
            return f"not authenticated within {AUTHENTICATION_SECONDS_MAX:g} s"
        if not self._calls and now - self.active_at > idle_max:
            return f"idle for {idle_max:g} s (connections.max.idle.ms)"
        return None
