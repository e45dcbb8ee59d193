"""A TCP proxy that cuts connections where it hurts an idempotent producer most: after the append, before the answer.

It reads frames both ways. Replies come in request order, so it knows which reply answers a Produce request; every n-th
of those is swallowed and the connection is reset instead. The broker has then stored the batch, and the client must
retry it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque

from bench.raw import PRODUCE

CONNECT_TIMEOUT_S = 10


class CuttingProxy:
    """Listens at once; `serve` names the broker. `arm` starts the cutting, `cuts` counts it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._broker: tuple[str, int] | None = None
        self._lock = threading.Lock()
        self._every = 0
        self._cuts_left = 0
        self._replies = 0
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def serve(self, port: int) -> None:
        self._broker = ("127.0.0.1", port)

    def arm(self, *, every: int, cuts_max: int) -> None:
        """Cut at every `every`-th reply to a Produce request, at most `cuts_max` times."""
        with self._lock:
            self._every, self._cuts_left, self._replies, self.cuts = every, cuts_max, 0, 0

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._broker is None:
                client.close()
                continue
            try:
                broker = socket.create_connection(self._broker, timeout=CONNECT_TIMEOUT_S)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            pending: deque[int] = deque()
            threading.Thread(target=self._forward_requests, args=(client, broker, pending), daemon=True).start()
            threading.Thread(target=self._forward_replies, args=(broker, client, pending), daemon=True).start()

    def _forward_requests(self, client: socket.socket, broker: socket.socket, pending: deque[int]) -> None:
        with contextlib.suppress(OSError, ConnectionError):
            while True:
                frame = _read_frame(client)
                (api_key,) = struct.unpack_from(">h", frame, 4)
                # Unacknowledged Produce (acks=0) has no reply; the suite sends none.
                pending.append(api_key)
                broker.sendall(frame)
        _reset(client, broker)

    def _forward_replies(self, broker: socket.socket, client: socket.socket, pending: deque[int]) -> None:
        with contextlib.suppress(OSError, ConnectionError):
            while True:
                frame = _read_frame(broker)
                if pending.popleft() == PRODUCE and self._cut_this_one():
                    break
                client.sendall(frame)
        _reset(client, broker)

    def _cut_this_one(self) -> bool:
        with self._lock:
            self._replies += 1
            if self._cuts_left == 0 or self._replies % self._every:
                return False
            self._cuts_left -= 1
            self.cuts += 1
            return True


def _read_exactly(source: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = source.recv(min(1 << 16, size - len(parts)))
        if not part:
            raise ConnectionError("closed")
        parts += part
    return bytes(parts)


def _read_frame(source: socket.socket) -> bytes:
    length = _read_exactly(source, 4)
    (size,) = struct.unpack(">i", length)
    if not 0 <= size <= 1 << 27:
        raise ConnectionError(f"a frame of {size} bytes")
    return length + _read_exactly(source, size)


def _reset(*sockets: socket.socket) -> None:
    """Close at once with a reset, as a broken network does; shutdown wakes the thread that still reads."""
    for one in sockets:
        with contextlib.suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            one.close()
