"""A well-behaved client in a process of its own: so many requests a second, and how long each took.

``python steady_client.py HOST PORT SECONDS RATE`` prints one line of JSON. Times count from when a request was due, not
from when it was sent, so a node that stalls is not flattered by a client that waits for it.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

from millbeck.wire import codec
from millbeck.wire.framing import request_prefix
from millbeck.wire.messages.metadata import MetadataRequest


def main() -> None:
    host, port, seconds, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    body = codec.encoder(MetadataRequest, 9)(MetadataRequest(topics=[]))
    request = request_prefix(3, 9, 1, "steady", len(body)) + body
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    count = int(seconds * rate)
    took: list[float] = []
    start = time.perf_counter()
    for number in range(count):
        due = start + number / rate
        wait = due - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        connection.sendall(request)
        (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
        connection.recv(size, socket.MSG_WAITALL)
        took.append(time.perf_counter() - due)
    took.sort()
    print(json.dumps({"count": count, "p50_ms": took[count // 2] * 1000, "p99_ms": took[int(count * 0.99)] * 1000}))


if __name__ == "__main__":
    main()
