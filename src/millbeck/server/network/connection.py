"""One client connection: frames in, replies out, in order.

Requests take effect in the order they arrive and are answered in that order. A request is handled inside
``buffer_updated`` and becomes a `Call`, which keeps its place in the line of replies. Only a wait after an append
leaves the connection free for the next request; any other wait holds it (`Call.hold`). A held connection is read until
something comes, which is kept for later and is the last that is read: so a peer that goes away while its fetch is
parked is noticed. Reading also stops at 64 unanswered requests, at a mebibyte of replies that cannot leave yet, and
while the peer does not take its replies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast

from millbeck.kernel.environment import FileSlice, Outlet, Part
from millbeck.security.principal import ANONYMOUS, Principal
from millbeck.server.receive import FrameReader, FrameTooLarge

if TYPE_CHECKING:
    from millbeck.server.call import Call
    from millbeck.server.listener import Listener

UNANSWERED_MAX: Final = 64
OUTPUT_HIGH_WATER_BYTES: Final = 1024 * 1024

LONG_REQUEST_BYTES: Final = 128 * 1024
READ_ON_BYTES_MAX: Final = 16 * 1024
READS_ON_MAX: Final = 4
LOOKS_SKIPPED_MAX: Final = 63

log = logging.getLogger(__name__)


def release_slices(parts: Sequence[Part]) -> None:
    for part in parts:
        if isinstance(part, FileSlice):
            part.release()


def bytes_in_memory(parts: Sequence[Part]) -> int:
    return sum([len(part) for part in parts if not isinstance(part, FileSlice)])


class Requests(Protocol):
    """What a connection needs from dispatch."""

    def handle(self, connection: Connection, frame: memoryview) -> None:
        """Handle one request; raises only for what must end the connection (`CloseConnection`)."""


class CloseConnection(Exception):
    """The peer sent something that has no answer; the text goes to the log."""


class Connection:
    """See the module's text; `ConnectionProtocol` is what asyncio knows of it."""

    __slots__ = (
        "_calls",
        "_frame_started_at",
        "_held_bytes",
        "_is_closing",
        "_is_draining",
        "_is_held",
        "_is_marked",
        "_is_paused",
        "_long_request_bytes",
        "_looks_skipped",
        "_looks_to_skip",
        "_on_lost",
        "_outlet",
        "_output_left_bytes",
        "_output_stalled_at",
        "_queued_bytes",
        "_reader",
        "_requests",
        "_shared_buffer",
        "_transport",
        "_turn",
        "_unsent_bytes",
        "_waits_for_memory",
        "active_at",
        "client_software",
        "is_lost",
        "listener",
        "local_host",
        "local_port",
        "now",
        "number",
        "peer_host",
        "peer_port",
        "principal",
        "wall_ms",
    )

    def __init__(self, listener: Listener, number: int) -> None:
        self.listener = listener
        self._requests = listener.requests
        self._shared_buffer = listener.shared_buffer
        self.now = listener.now
        self._turn = listener.turn
        self.number = number
        self.peer_host = ""
        self.peer_port = 0
        self.local_host = ""
        self.local_port = 0
        self.client_software = ("unknown", "unknown")
        self.principal: Principal = ANONYMOUS
        self.is_lost = False
        self.active_at = 0.0
        self.wall_ms = -1
        """The wall clock for requests that arrived together; -1 until the first of them has asked for it."""
        self._frame_started_at = 0.0
        self._output_stalled_at = 0.0
        self._output_left_bytes = 0
        self._unsent_bytes = 0  # in memory, of replies that were made and not handed to the outlet
        self._queued_bytes = 0  # in memory, of replies that the outlet has and the peer does not take
        self._calls: list[Call] = []
        self._is_held = False
        self._is_paused = False
        self._looks_skipped = 0
        self._looks_to_skip = 0
        self._is_marked = False
        self._is_draining = False
        self._is_closing = False
        self._outlet: Outlet | None = None
        self._transport: asyncio.Transport | None = None
        self._held_bytes = 0
        self._long_request_bytes = max(listener.buffers.receive_bytes, LONG_REQUEST_BYTES)
        self._waits_for_memory = False
        self._reader = FrameReader(listener.shared_buffer, listener.frame_bytes_max, self._frame)
        self._on_lost: dict[Callable[[], None], None] | None = None

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        local = transport.get_extra_info("sockname")
        if peer:
            self.peer_host, self.peer_port = peer[0], peer[1]
        if local:
            self.local_host, self.local_port = local[0], local[1]
        self.active_at = self.now()
        self._outlet = self.listener.network.outlet(self._transport, buffers=self.listener.buffers)
        self._outlet.on_drained(self._drained)
        self._outlet.begin_reading(self.get_buffer, self.buffer_updated)
        refusal = self.listener.admit(self)
        if refusal:
            log.warning("connection from %s:%s refused: %s", self.peer_host, self.peer_port, refusal)
            self._is_closing = True
            self._transport.abort()
        elif not self.listener.is_open:
            # Held as well: a transport that has begun to read may do so once more.
            self._is_held = True
            self._pause()

    def begin(self) -> None:
        """The node takes requests now; those of connections that came before it did were not looked at."""
        self._is_held = False
        if self._is_paused:
            self._go_on()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer_for_receive()

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_closing:
            return
        turn = self._turn
        if not turn.begin():
            self._received(nbytes)
            return
        try:
            self._received(nbytes)
        finally:
            turn.end()
        if nbytes <= READ_ON_BYTES_MAX:
            self._read_more()

    def _read_more(self) -> None:
        """Take what has come meanwhile without another round of the loop, which costs more than a look.

        Only where looking has paid lately, and only so often: other connections wait meanwhile.
        """
        if self._looks_skipped < self._looks_to_skip:
            self._looks_skipped += 1
            return
        self._looks_skipped = 0
        outlet, turn = self._outlet, self._turn
        assert outlet is not None
        for _ in range(READS_ON_MAX):
            if self._is_paused or self._is_held or self._is_closing or not turn.begin():
                return
            count = 0
            try:
                count = outlet.receive(self._reader.buffer_for_receive())
                if count > 0:
                    self._received(count)
            finally:
                turn.end()
            if count <= 0:
                self._looks_to_skip = min(2 * self._looks_to_skip + 1, LOOKS_SKIPPED_MAX)
                return
            self._looks_to_skip = 0

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
            self.close(
                f"frame of {size} bytes (allowed: 8 to socket.request.max.bytes={self.listener.frame_bytes_max})"
            )
            return
        self._frame_started_at = self.active_at if self._reader.is_inside_frame else 0.0
        self.listener.bytes_in.value += nbytes
        if self._reader.held_bytes != self._held_bytes and not self._account():
            goes_on = False
        if not goes_on and not self._is_paused and not self._only_listens:
            self._pause()

    @property
    def _only_listens(self) -> bool:
        """Held, with nothing kept: reading goes on, to hear whether the peer is still there."""
        return (
            self._is_held
            and not self._reader.is_inside_frame
            and len(self._calls) < UNANSWERED_MAX
            and not self._is_draining
        )

    def _account(self) -> bool:
        """Tell the node what memory this connection holds; whether it may go on reading."""
        before, self._held_bytes = self._held_bytes, self._reader.held_bytes
        self._waits_for_memory = not self.listener.memory.changed(self, before, self._held_bytes)
        if self._waits_for_memory:
            return False
        if self._reader.frame_bytes > self._long_request_bytes and self._outlet is not None:
            self._outlet.expect_long_requests()
        return True

    def read_on(self) -> None:
        """There is room for requests again: go on at the end of the turn, not inside whoever made the room."""
        self._waits_for_memory = False
        self.mark_replies()

    def resume_writing(self) -> None:
        if self._outlet is not None:
            self._outlet.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._is_closing = True
        if self._outlet is not None:
            self._outlet.closed()
        for call in self._calls:
            if call.parts is not None:
                release_slices(call.parts)
        self._calls.clear()
        self._reader.discard()
        self.listener.memory.changed(self, self._held_bytes, 0)
        self._held_bytes = 0
        self.listener.replies.holds(self, 0)
        callbacks = self._on_lost or {}
        self._on_lost = None
        for callback in callbacks:
            callback()
        self.listener.forget(self)

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

    def enqueue(self, call: Call) -> None:
        self._calls.append(call)

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call it when the connection is lost, at once when it is already."""
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
        self._is_held = True

    def release_after_turn(self) -> None:
        self._is_held = False

    # replies

    def mark_replies(self) -> None:
        if not self._is_marked:
            self._is_marked = True
            self._turn.mark_replies(self)

    def flush_replies(self) -> None:
        """Send every reply at the head of the line; called once a turn."""
        self._is_marked = False
        if self.is_lost:
            return
        calls = self._calls
        parts: list[Part] = []
        timed: list[Call] = []
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
        outlet = self._outlet
        assert outlet is not None
        if parts:
            sending_at = self.now() if timed else 0.0
            outlet.send(parts)
            for call in timed:
                if call.times is not None:
                    call.times.sent(sending_at, self.now())
            if outlet.queued_bytes:
                self._queued(bytes_in_memory(parts))
        if self._is_draining and not calls:
            self._is_closing = True
            outlet.close_when_drained()
        elif self._is_paused and not self._is_held and len(calls) < UNANSWERED_MAX:
            self._go_on()

    def _queued(self, added_bytes: int) -> None:
        """The peer has not taken everything: tell the node what memory that holds, and read no more if it is much."""
        outlet = self._outlet
        assert outlet is not None
        queued_bytes = outlet.queued_bytes
        self._queued_bytes = min(self._queued_bytes + added_bytes, queued_bytes)
        self.listener.replies.holds(self, self._queued_bytes + self._unsent_bytes)
        if queued_bytes > OUTPUT_HIGH_WATER_BYTES and not self._is_paused:
            self._pause()

    def _go_on(self) -> None:
        """Look at what was kept while the connection was held, then read again."""
        outlet = self._outlet
        assert outlet is not None
        if self._is_closing or self._waits_for_memory or outlet.queued_bytes > OUTPUT_HIGH_WATER_BYTES:
            return
        self.wall_ms = -1
        try:
            goes_on = self._reader.resume()
        except CloseConnection as refusal:
            self.close(str(refusal))
            return
        except FrameTooLarge as size:
            self.close(f"frame of {size} bytes")
            return
        self._frame_started_at = self.now() if self._reader.is_inside_frame else 0.0
        if self._reader.held_bytes != self._held_bytes and not self._account():
            return
        if self._is_paused and (goes_on or self._only_listens):
            self._is_paused = False
            outlet.resume_reading()

    def _pause(self) -> None:
        assert self._transport is not None
        assert self._outlet is not None
        self._is_paused = True
        if not self._transport.is_closing():
            self._outlet.pause_reading()

    def _drained(self) -> None:
        self._queued_bytes = 0
        self.listener.replies.holds(self, self._unsent_bytes)
        if self._is_paused and not self._is_held and len(self._calls) < UNANSWERED_MAX:
            self._go_on()

    # ends

    def close(self, reason: str) -> None:
        """Close at once; what was not sent is dropped."""
        if self._is_closing:
            return
        self._is_closing = True
        log.info("closing connection from %s:%s: %s", self.peer_host, self.peer_port, reason)
        if self._transport is not None:
            self._transport.abort()

    def close_when_answered(self) -> None:
        """Take no more requests and close after the last reply (shutdown)."""
        if self._is_closing:
            return
        self._is_draining = True
        if not self._is_paused:
            self._pause()
        self.mark_replies()

    def overdue(self, now: float, *, idle_max: float, frame_max: float, stall_max: float) -> str | None:
        """Why this connection should be closed now, if it should; asked every few seconds."""
        left_bytes = self._outlet.queued_bytes if self._outlet is not None else 0
        if not left_bytes or left_bytes < self._output_left_bytes or not self._output_stalled_at:
            self._output_stalled_at = now if left_bytes else 0.0
        self._output_left_bytes = left_bytes
        if left_bytes < self._queued_bytes:
            self._queued(0)
        if self._output_stalled_at and now - self._output_stalled_at > stall_max:
            return f"did not read its replies for {stall_max:g} s"
        if self._frame_started_at and not self._is_paused and now - self._frame_started_at > frame_max:
            return f"no progress inside a request for {frame_max:g} s"
        if not self._calls and now - self.active_at > idle_max:
            return f"idle for {idle_max:g} s (connections.max.idle.ms)"
        return None
