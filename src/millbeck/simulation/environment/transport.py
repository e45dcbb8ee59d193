"""One end of a simulated TCP connection.

Bytes travel through a `Pipe` per direction, first in first out: latency, jitter and split deliveries change when and in
which pieces they arrive, never their order. A cut link or a machine without power stalls the pipe until the network
heals. Received bytes wait in the inbox, as in a kernel's receive buffer, until the process reads them, one read per
callback as in asyncio. Bytes count against the sender's limit until the receiver reads them: that is the back-pressure.
"""

from __future__ import annotations

import asyncio
import errno
from asyncio import transports
from collections import deque
from contextvars import Context
from enum import Enum
from typing import TYPE_CHECKING, Any

from millbeck.simulation.environment.process import KERNEL, Process

if TYPE_CHECKING:
    from millbeck.simulation.environment.fabric import Fabric


class TcpSegment(Enum):
    DATA = "data"
    FIN = "fin"
    RESET = "reset"


class Pipe:
    """One direction of a connection."""

    __slots__ = ("_fabric", "_is_scheduled", "_last_due", "_segments", "_target", "source_machine", "target_machine")

    def __init__(self, fabric: Fabric, source_machine: str, target: SimTransport) -> None:
        self._fabric = fabric
        self._target = target
        self.source_machine = source_machine
        self.target_machine = target.process.machine_name
        self._segments: deque[tuple[float, TcpSegment, bytes]] = deque()
        self._is_scheduled = False
        self._last_due = 0.0

    def put(self, kind: TcpSegment, data: bytes = b"") -> None:
        fabric = self._fabric
        due = max(self._last_due, fabric.loop.time() + fabric.delay(self.source_machine, self.target_machine))
        self._last_due = due
        self._segments.append((due, kind, data))
        self._schedule()

    def drop_tail(self, size: int) -> None:
        """Discard the last ``size`` bytes: they had not left the sender's memory."""
        while size > 0 and self._segments:
            due, kind, data = self._segments.pop()
            if len(data) > size:
                self._segments.append((due, kind, data[: len(data) - size]))
            size -= len(data)

    def drop_all(self) -> None:
        self._segments.clear()

    def retransmit(self) -> None:
        """Retransmit, because the link may be up again."""
        self._schedule(delay=self._fabric.delay(self.source_machine, self.target_machine))

    def _schedule(self, delay: float = 0.0) -> None:
        if self._segments and not self._is_scheduled:
            self._is_scheduled = True
            due = max(self._segments[0][0], self._fabric.loop.time() + delay)
            self._fabric.loop.call_at(due, self._arrive, context=KERNEL)

    def _arrive(self) -> None:
        self._is_scheduled = False
        if not self._segments:
            return
        fabric = self._fabric
        if fabric.is_blocked(self.source_machine, self.target_machine):
            fabric.stalled[self] = None
            return
        _, kind, data = self._segments.popleft()
        if kind is TcpSegment.DATA and len(data) > 1 and fabric.chance(fabric.options.torn_delivery):
            cut = 1 + fabric.below(len(data) - 1)
            self._segments.appendleft((fabric.loop.time() + fabric.options.latency_s, kind, data[cut:]))
            data = data[:cut]
        self._target.arrived(kind, data)
        self._schedule()


class SimTransport(transports.Transport):
    def __init__(self, fabric: Fabric, number: int, process: Process, context: Context, extra: dict[str, Any]) -> None:
        super().__init__(extra)
        self.process = process
        self.number = number
        self._fabric = fabric
        self._context = context
        self._protocol: asyncio.BaseProtocol | None = None
        self._peer: SimTransport | None = None
        self._pipe: Pipe | None = None
        self._inbox: deque[tuple[TcpSegment, bytes]] = deque()
        self._unread_by_peer = 0
        self._high, self._low = 64 << 10, 16 << 10
        self._is_reading = False
        self._is_read_scheduled = False
        self._is_reset = False
        self._is_writing_paused = False
        self._is_closing = False
        self._is_fin_sent = False
        self._is_lost = False

    def join(self, peer: SimTransport) -> None:
        self._peer = peer
        self._pipe = Pipe(self._fabric, self.process.machine_name, peer)

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        """Start delivering to the protocol, beginning with data that has arrived."""
        if self._is_lost:
            return
        self._protocol = protocol
        self._is_reading = True
        protocol.connection_made(self)
        self._wake()

    def arrived(self, kind: TcpSegment, data: bytes) -> None:
        """Receive bytes as the kernel does."""
        if self._is_lost or not self.process.is_alive:
            if kind is TcpSegment.DATA:
                # No process owns this connection any more.
                self._send(TcpSegment.RESET)
            return
        if kind is TcpSegment.RESET:
            self._inbox.clear()
            self._is_reset = True
            if self._is_closing:
                # It was waiting for its last bytes to be read; they never will be.
                self._lose_soon(ConnectionResetError(errno.ECONNRESET, "connection reset by peer"))
        self._inbox.append((kind, data))
        self._wake()

    def _wake(self) -> None:
        if self._inbox and self._is_reading and not self._is_read_scheduled and not self._is_closing:
            self._is_read_scheduled = True
            self._fabric.loop.call_soon(self._read, context=self._context)

    def _read(self) -> None:
        self._is_read_scheduled = False
        if not self._inbox or not self._is_reading or self._is_closing:
            return
        kind, data = self._inbox.popleft()
        try:
            if kind is TcpSegment.DATA:
                self._read_data(data)
            elif kind is TcpSegment.RESET:
                self._lose(ConnectionResetError(errno.ECONNRESET, "connection reset by peer"))
            elif not self._protocol.eof_received():  # type: ignore[union-attr]
                self.close()
        except Exception as error:
            self._fabric.loop.call_exception_handler(
                {"message": "a protocol raised", "exception": error, "transport": self, "protocol": self._protocol}
            )
            self._lose(error)
        self._wake()

    def _read_data(self, data: bytes) -> None:
        fabric = self._fabric
        if self._inbox and fabric.chance(0.5):
            pieces = [data]
            while self._inbox and self._inbox[0][0] is TcpSegment.DATA:
                pieces.append(self._inbox.popleft()[1])
            data = b"".join(pieces)
        protocol = self._protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            # Released before the protocol is called, as recv_into does: the protocol may resize its buffer.
            with memoryview(protocol.get_buffer(-1)) as buffer:
                size = min(len(buffer), len(data))
                buffer[:size] = data[:size]
            if size < len(data):
                self._inbox.appendleft((TcpSegment.DATA, data[size:]))
                data = data[:size]
        fabric.trace("read", self.number, self.process.name, data)
        fabric.delivered_bytes += len(data)
        if self._peer is not None:
            self._peer.acknowledged(len(data))
        if isinstance(protocol, asyncio.BufferedProtocol):
            protocol.buffer_updated(len(data))
        else:
            protocol.data_received(data)  # type: ignore[union-attr]

    def acknowledged(self, size: int) -> None:
        """Account for bytes that the peer has read."""
        self._unread_by_peer -= size
        if self._is_lost or not self.process.is_alive:
            return
        if self._is_writing_paused and self.get_write_buffer_size() <= self._low:
            self._is_writing_paused = False
            self._fabric.loop.call_soon(self._resume_writing, context=self._context)
        if self._is_closing and self.get_write_buffer_size() == 0:
            self._finish_close()

    def _resume_writing(self) -> None:
        if not self._is_lost and not self._is_writing_paused:
            self._protocol.resume_writing()  # type: ignore[union-attr]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not data or self._is_closing or self._is_fin_sent:
            return
        fabric = self._fabric
        if self._is_reset:
            self._lose_soon(ConnectionResetError(errno.EPIPE, "broken pipe"))
            return
        if fabric.options.reset and fabric.chance(fabric.options.reset):
            self.reset()
            return
        self._unread_by_peer += len(data)
        self._send(TcpSegment.DATA, bytes(data))
        if not self._is_writing_paused and self.get_write_buffer_size() > self._high:
            self._is_writing_paused = True
            self._protocol.pause_writing()  # type: ignore[union-attr]

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def _send(self, kind: TcpSegment, data: bytes = b"") -> None:
        if self._pipe is not None:
            self._pipe.put(kind, data)

    def write_eof(self) -> None:
        if not self._is_fin_sent:
            self._is_fin_sent = True
            self._send(TcpSegment.FIN)

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            if self._is_reset or self.get_write_buffer_size() == 0:
                self._finish_close()

    def _finish_close(self) -> None:
        if not self._is_fin_sent:
            self._is_fin_sent = True
            # A kernel answers the close of a socket with unread bytes by a reset.
            self._send(TcpSegment.RESET if self._inbox else TcpSegment.FIN)
        self._lose_soon(None)

    def abort(self) -> None:
        if not self._is_lost:
            self._end_abruptly()
            self._lose_soon(None)

    def reset(self) -> None:
        """Reset the connection for both ends."""
        if not self._is_lost:
            self._send(TcpSegment.RESET)
            self._is_fin_sent = True
            self._lose_soon(ConnectionResetError(errno.ECONNRESET, "connection reset by peer"))

    def kill(self, *, is_silent: bool) -> None:
        """End the connection of a dead process: the kernel closes it, or sends nothing after a power loss."""
        self._is_closing = self._is_lost = True
        if is_silent:
            if self._pipe is not None and self._fabric.chance(0.5):
                self._pipe.drop_all()
        else:
            self._end_abruptly()
        self._inbox.clear()
        self._fabric.forget(self)

    def _end_abruptly(self) -> None:
        if not self._is_fin_sent:
            self._is_fin_sent = True
            if self._pipe is not None:
                self._pipe.drop_tail(self.get_write_buffer_size())
            self._send(TcpSegment.RESET if self._inbox or self._fabric.chance(0.5) else TcpSegment.FIN)

    def _lose_soon(self, error: Exception | None) -> None:
        self._is_closing = True
        self._fabric.loop.call_soon(self._lose, error, context=self._context)

    def _lose(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        if not self._is_fin_sent and not self._is_reset:
            self._end_abruptly()
        self._is_lost = self._is_closing = True
        self._is_reading = False
        self._inbox.clear()
        self._fabric.forget(self)
        protocol, self._protocol = self._protocol, None  # as asyncio's transports let go of theirs
        if protocol is not None:
            protocol.connection_lost(error)

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        if not self._is_lost:
            self._is_reading = True
            self._wake()

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_write_buffer_size(self) -> int:
        """The number of bytes that a kernel would not have accepted yet."""
        return max(0, self._unread_by_peer - self._fabric.options.socket_buffer_bytes)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = 64 << 10 if low is None else 4 * low
        if low is None:
            low = high // 4
        self._high, self._low = high, low
