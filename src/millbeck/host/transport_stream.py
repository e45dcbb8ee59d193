"""Stream over an asyncio transport, for the simulator, whose transports have no socket.

Slices are read and written as bytes. The transport gets about a mebibyte at a time, and more only when its buffer is
empty again: the write limits are set so that ``pause_writing`` and ``resume_writing`` are called exactly when its
buffer becomes non-empty and empty, and the protocol forwards the latter to this stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from millbeck.host.part_queue import FileSliceTruncated, SendQueue, release_slices
from millbeck.kernel.environment import Part

HANDED_BYTES_MAX = 1 << 20
_WRITE_BYTES_MAX = 256 << 10
_COPY_EVERY_SLICE = 1 << 62


class TransportStream:
    __slots__ = (
        "_drained",
        "_is_busy",
        "_is_closing",
        "_is_over",
        "_is_pumping",
        "_queue",
        "_transport",
        "_turn",
    )

    def __init__(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=0, low=0)
        self._transport = transport
        self._queue = SendQueue()
        self._drained: Callable[[], None] | None = None
        self._turn: asyncio.Handle | None = None
        self._is_busy = False
        self._is_pumping = False
        self._is_closing = False
        self._is_over = False

    @property
    def queued_bytes(self) -> int:
        return self._queue.size_bytes + self._transport.get_write_buffer_size()

    def send(self, parts: Sequence[Part]) -> None:
        if self._is_over or self._is_closing or self._transport.is_closing():
            release_slices(parts)
            return
        self._queue.extend(parts)
        if not self._is_busy and not self._is_pumping:
            self._pump()

    def begin_reading(self, get_buffer: Callable[[int], memoryview], buffer_updated: Callable[[int], None]) -> None:
        """Nothing to do: the transport reads, and calls its protocol."""

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def receive(self, buffer: memoryview) -> int:
        return 0

    def expect_long_requests(self) -> None:
        """Not supported over a transport."""

    def resume_writing(self) -> None:
        if self._is_busy and not self._is_pumping and not self._is_over:
            self._continue()

    def on_drained(self, callback: Callable[[], None]) -> None:
        self._drained = callback

    def close_when_drained(self) -> None:
        self._is_closing = True
        if not self._queue:
            # The transport sends its buffer before it closes.
            self._transport.close()

    def closed(self) -> None:
        self._is_over = True
        self._drained = None
        self._queue.clear()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def _continue(self) -> None:
        self._turn = None
        if self._transport.is_closing():
            self.closed()
            return
        self._pump()
        if self._is_busy or self._is_over:
            return
        if self._is_closing:
            self._transport.close()
        elif self._drained is not None:
            self._drained()

    def _pump(self) -> None:
        """Write to the transport until it has enough, the connection's share is used up, or the queue is empty."""
        transport = self._transport
        share = HANDED_BYTES_MAX
        self._is_pumping = True
        try:
            while self._queue and share > 0 and transport.get_write_buffer_size() < HANDED_BYTES_MAX:
                buffers = self._queue.take(min(share, _WRITE_BYTES_MAX), copied_slice_bytes_max=_COPY_EVERY_SLICE)
                data = buffers[0] if len(buffers) == 1 else b"".join(buffers)
                transport.write(data)
                share -= len(data)
        except (OSError, FileSliceTruncated):
            self.closed()
            transport.abort()
        finally:
            self._is_pumping = False
        buffered = transport.get_write_buffer_size()
        self._is_busy = bool(self._queue) or buffered > 0
        if self._queue and not buffered and self._turn is None:
            # The share is used up and nothing is buffered, so ``resume_writing`` will not be called: continue in the
            # next iteration.
            self._turn = asyncio.get_running_loop().call_soon(self._continue)
