"""The writer over an asyncio transport: under TLS, where bytes pass through the record layer, and in the simulator.

Slices are read and written as bytes. The transport is given about a mebibyte at a time and asked for more only when
its buffer is empty again: the write limits are set so that ``pause_writing`` and ``resume_writing`` mark exactly the
times at which something is buffered, and the protocol forwards the latter here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from millbeck.host.part_queue import PartQueue, SliceShrank, release_slices
from millbeck.kernel.environment import Part

HANDED_BYTES_MAX = 1 << 20
_WRITE_BYTES_MAX = 256 << 10
_COPY_EVERY_SLICE = 1 << 62


class TransportOutlet:
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
        # A plain transport pauses when it holds more than the limit, the TLS layer when it holds as much.
        is_tls = transport.get_extra_info("sslcontext") is not None
        transport.set_write_buffer_limits(high=1 if is_tls else 0, low=0)
        self._transport = transport
        self._queue = PartQueue()
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
        """The transport reads, and calls its protocol."""

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def receive(self, buffer: memoryview) -> int:
        return 0

    def expect_long_requests(self) -> None:
        """The transport reads as it does."""

    def resume_writing(self) -> None:
        # The TLS layer pauses and resumes for messages of its own, too.
        if self._is_busy and not self._is_pumping and not self._is_over:
            self._continue()

    def on_drained(self, callback: Callable[[], None]) -> None:
        self._drained = callback

    def close_when_drained(self) -> None:
        self._is_closing = True
        if not self._queue:
            # The transport sends what it has buffered before it closes.
            self._transport.close()

    def closed(self) -> None:
        self._is_over = True
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
        """Hand bytes to the transport until it holds enough, the turn's share is used up, or none are left."""
        transport = self._transport
        share = HANDED_BYTES_MAX
        self._is_pumping = True
        try:
            while self._queue and share > 0 and transport.get_write_buffer_size() < HANDED_BYTES_MAX:
                buffers = self._queue.take(min(share, _WRITE_BYTES_MAX), copied_slice_bytes_max=_COPY_EVERY_SLICE)
                data = buffers[0] if len(buffers) == 1 else b"".join(buffers)
                transport.write(data)
                share -= len(data)
        except (OSError, SliceShrank):
            self.closed()
            transport.abort()
        finally:
            self._is_pumping = False
        buffered = transport.get_write_buffer_size()
        self._is_busy = bool(self._queue) or buffered > 0
        if self._queue and not buffered and self._turn is None:
            # Nothing is buffered, so nobody will call back: this is the end of the turn's share.
            self._turn = asyncio.get_running_loop().call_soon(self._continue)
