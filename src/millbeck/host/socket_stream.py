"""Stream over a plain socket: bytes out by writev, file slices by sendfile, bytes in by recv, all non-blocking.

Theory of operation. The asyncio transport opens and closes the connection and does nothing in between. All output goes
through this stream, so the transport's write buffer stays empty and the two never interleave; all input is read here,
which avoids several transport calls per request. ``send`` tries at once. When the kernel accepts no more, or the
connection has used its share of this loop iteration, the rest is queued and the event loop watches the descriptor until
the queue is empty. When the peer has closed or the socket failed, the transport resumes reading, gets the same error
and ends the connection as usual. The descriptor is the transport's own and is used only while the transport is not
closing: afterwards its number may belong to another file.

Each refill of a full send buffer costs a wake-up, which is most of a long response's cost outside the kernel. So the
first long slice that does not fit enlarges the buffer, once, up to the owner's limit; likewise the receive buffer when
the owner receives long requests (docs/adr/0011).

A connection that streams requests is read at most once in 0.3 ms, and the event loop sleeps in between
(`read_moderation`), unless it has other work.

Any ``OSError`` aborts the transport, also one of the file: the response's header has announced bytes that will not
come. ``connection_lost`` must call `closed`, before the transport closes a descriptor that is still watched.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from millbeck.host.part_queue import FileSliceTruncated, SendQueue, release_slices
from millbeck.host.read_moderation import ReadModeration
from millbeck.kernel.environment import SYSTEM_BUFFERS, Bytes, FileSlice, Part, SocketBuffers

# How much one connection may send before the others are served.
TURN_BYTES_MAX = 1 << 20
# Slices up to this size are read and sent with their header in one call; longer ones go by sendfile.
COPIED_SLICE_BYTES_MAX = 64 << 10
_BUFFERS_MAX = 512
# Data read into memory that the kernel does not accept stays there, on every connection with a slow peer.
_WRITE_BYTES_MAX = 128 << 10
_monotonic: Final = time.monotonic


def _never() -> bool:
    return False


class SocketStream:
    __slots__ = (
        "_buffer_updated",
        "_copied_slice_bytes_max",
        "_descriptor",
        "_drained",
        "_get_buffer",
        "_has_taken_over",
        "_is_closing",
        "_is_linux",
        "_is_over",
        "_is_reading",
        "_is_watched",
        "_loop",
        "_may_rest",
        "_moderation",
        "_queue",
        "_receive_buffer_bytes_max",
        "_send_buffer_bytes_max",
        "_socket",
        "_state",
        "_transport",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        connected: socket.socket,
        *,
        is_linux: bool,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
    ) -> None:
        """``connected`` is the transport's own socket; it is not closed here."""
        self._transport = transport
        # Checked several times per event batch; the transport's own method would be an interpreted call.
        self._state: Any = transport
        self._socket = connected
        self._descriptor = connected.fileno()
        # asyncio's event loops watch a transport's descriptor for others only by these private methods.
        self._loop: Any = asyncio.get_running_loop()
        self._queue = SendQueue()
        self._is_watched = False
        self._is_reading = False
        self._has_taken_over = False
        self._get_buffer: Callable[[int], memoryview] | None = None
        self._buffer_updated: Callable[[int], None] | None = None
        self._drained: Callable[[], None] | None = None
        # -1 once the buffer was enlarged, or when it must not be.
        self._send_buffer_bytes_max = buffers.send_bytes_max if buffers.growth > 1 else -1
        self._receive_buffer_bytes_max = buffers.receive_bytes_max if buffers.growth > 1 else -1
        self._moderation = ReadModeration()
        # Only `HostLoop` can tell; on any other event loop reads are not delayed.
        self._may_rest: Callable[[], bool] = getattr(self._loop, "may_rest", _never)
        self._is_closing = False
        self._is_over = False
        self._is_linux = is_linux
        self._copied_slice_bytes_max = COPIED_SLICE_BYTES_MAX if is_linux else 1 << 62

    @property
    def queued_bytes(self) -> int:
        return self._queue.size_bytes

    def send(self, parts: Sequence[Part]) -> None:
        if self._is_over or self._is_closing or self._state._closing:
            release_slices(parts)
            return
        queue = self._queue
        if not queue:
            rest = self._send_at_once(parts)
            if rest is None:
                return
            queue.extend(rest)
            if not self._pump():
                self._watch()
        else:
            queue.extend(parts)

    def _send_at_once(self, parts: Sequence[Part]) -> Sequence[Part] | None:
        """Fast path for the usual response, bytes and short slices: send without the queue; returns the unsent rest,
        or None.

        A slice is released as soon as it is read: its bytes are in memory then, sent or not.
        """
        buffers: list[Bytes] = []
        size = 0
        try:
            for part in parts:
                if isinstance(part, FileSlice):
                    part_size = part.size
                    if part_size > self._copied_slice_bytes_max or size + part_size > _WRITE_BYTES_MAX:
                        break
                    buffer: Bytes = part.file.read(part_size, part.position)
                    if len(buffer) != part_size:
                        raise FileSliceTruncated
                    part.release()
                else:
                    buffer = part
                    part_size = len(part)
                buffers.append(buffer)
                size += part_size
            if len(buffers) < len(parts) or len(buffers) > _BUFFERS_MAX:
                return [*buffers, *parts[len(buffers) :]]
            sent = os.write(self._descriptor, buffers[0]) if len(buffers) == 1 else os.writev(self._descriptor, buffers)
        except BlockingIOError:
            return buffers
        except (OSError, FileSliceTruncated):
            release_slices(parts[len(buffers) :])
            self._fail()
            return None
        return None if sent == size else _after(buffers, sent)

    def receive(self, buffer: memoryview) -> int:
        if self._is_over or self._state._closing:
            return 0
        try:
            return os.readv(self._descriptor, [buffer])
        except OSError:
            # Nothing to read; any other error, and the end of the connection, is handled by the transport.
            return 0

    def begin_reading(self, get_buffer: Callable[[int], memoryview], buffer_updated: Callable[[int], None]) -> None:
        self._get_buffer = get_buffer
        self._buffer_updated = buffer_updated
        self._is_reading = True
        # Deferred: the transport starts reading after ``connection_made``, whatever was requested there.
        self._loop.call_soon(self._take_over)

    def _take_over(self) -> None:
        if self._is_over or self._transport.is_closing():
            return
        self._transport.pause_reading()
        self._has_taken_over = True
        if self._is_reading:
            self._loop._add_reader(self._descriptor, self._on_readable)

    def pause_reading(self) -> None:
        self._is_reading = False
        if not self._transport.is_closing():
            self._loop._remove_reader(self._descriptor)

    def resume_reading(self) -> None:
        self._is_reading = True
        if self._has_taken_over and not self._transport.is_closing():
            self._loop._add_reader(self._descriptor, self._on_readable)

    def _on_readable(self) -> None:
        if self._is_over or self._state._closing:
            return
        get_buffer, buffer_updated = self._get_buffer, self._buffer_updated
        assert get_buffer is not None
        assert buffer_updated is not None
        moderation = self._moderation
        now = _monotonic()
        rest_s = moderation.on_readable(now)
        if rest_s > 0.0 and self._may_rest():
            time.sleep(rest_s)
            now = _monotonic()
        buffer = get_buffer(-1)
        room = len(buffer)
        try:
            count = self._socket.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count > 0:
            moderation.read_at = now
            moderation.size_bytes = count
            try:
                buffer_updated(count)
            except BaseException:
                self._fail()
                raise
            # The buffer itself may have been released by its handler.
            moderation.handled_at = _monotonic() if count < room else 0.0
        else:
            self._loop._remove_reader(self._descriptor)
            self._transport.resume_reading()

    def expect_long_requests(self) -> None:
        size = self._receive_buffer_bytes_max
        if size > 0 and not self._state._closing:
            self._receive_buffer_bytes_max = -1
            self._set_buffer(socket.SO_RCVBUF, size)

    def resume_writing(self) -> None:
        """Nothing to do: the transport's own buffer is never used, so it never pauses writing."""

    def on_drained(self, callback: Callable[[], None]) -> None:
        self._drained = callback

    def close_when_drained(self) -> None:
        self._is_closing = True
        if not self._queue:
            self._transport.close()

    def closed(self) -> None:
        self._is_over = True
        self._unwatch()
        self._queue.clear()
        # These refer to the owner, and the last one from the transport to itself. Without them a closed connection is
        # freed at once, without the garbage collector.
        self._get_buffer = self._buffer_updated = self._drained = None
        self._state._read_ready_cb = None

    def _pump(self) -> bool:
        """Send until the queue is empty (True), or the kernel accepts no more or the connection's share is used up
        (False).
        """
        queue = self._queue
        share = TURN_BYTES_MAX
        try:
            while queue:
                if share <= 0:
                    return False
                buffers = queue.take(min(share, _WRITE_BYTES_MAX), copied_slice_bytes_max=self._copied_slice_bytes_max)
                if buffers:
                    size = sum(map(len, buffers))
                    sent = self._write(buffers)
                    if sent < size:
                        queue.put_back(buffers, sent)
                        return False
                else:
                    sent, is_all = self._send_from_file(share)
                    if not is_all and not self._grow_send_buffer():
                        return False
                share -= sent
        except (OSError, FileSliceTruncated):
            self._fail()
        return True

    def _write(self, buffers: list[Bytes]) -> int:
        try:
            if self._is_linux and self._queue.begins_with_slice():
                # MSG_MORE: the header waits for the slice that sendfile adds, instead of being sent in a packet of its
                # own.
                return self._socket.sendmsg(buffers, (), socket.MSG_MORE)
            return os.writev(self._descriptor, buffers)
        except BlockingIOError:
            return 0

    def _send_from_file(self, size_max: int) -> tuple[int, bool]:
        """Send part of the slice at the front; returns how much, and whether the kernel accepted all of it.

        When it accepted less its buffer is full. Another call to confirm that would look up the pages of the next
        range in vain.
        """
        part, position, left = self._queue.first_slice()
        source = part.file.descriptor()
        assert source is not None, "a slice of a file that is not real on a real socket"
        size = min(left, size_max)
        try:
            sent = os.sendfile(self._descriptor, source, position, size)
        except BlockingIOError:
            return 0, False
        if sent == 0:
            raise FileSliceTruncated
        self._queue.advance_first_slice(sent)
        return sent, sent == size

    def _grow_send_buffer(self) -> bool:
        """Enlarge the send buffer for a slice that did not fit, only once; False when it cannot be enlarged."""
        size = self._send_buffer_bytes_max
        if size <= 0:
            return False
        self._send_buffer_bytes_max = -1
        return self._set_buffer(socket.SO_SNDBUF, size)

    def _set_buffer(self, option: int, size: int) -> bool:
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, option, size)
        except OSError:
            # Above this system's maximum, or a closed connection, which the next call detects.
            return False
        return True

    def _watch(self) -> None:
        if not self._is_over and not self._is_watched:
            self._is_watched = True
            self._loop._add_writer(self._descriptor, self._on_writable)

    def _unwatch(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop._remove_writer(self._descriptor)

    def _on_writable(self) -> None:
        if self._state._closing:
            self.closed()
            return
        try:
            is_empty = self._pump()
        except BaseException:
            # A callback that raises stays registered and would be called in a busy loop.
            self._fail()
            raise
        if not is_empty or self._is_over:
            return
        self._unwatch()
        if self._is_closing:
            self._transport.close()
        elif self._drained is not None:
            self._drained()

    def _fail(self) -> None:
        self.closed()
        self._transport.abort()


def _after(buffers: list[Bytes], sent: int) -> list[Bytes]:
    """The buffers without their first ``sent`` bytes."""
    for position, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[position + 1 :]]
        sent -= len(buffer)
    return []
