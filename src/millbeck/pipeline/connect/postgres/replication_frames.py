"""What goes over a connection in COPY BOTH mode: WAL data and keepalives from the server, status updates to it.

PostgreSQL counts time in microseconds since 2000.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from millbeck.pipeline.connect.errors import ConnectError

_XLOG_DATA: Final = struct.Struct(">cQQq")
_KEEPALIVE: Final = struct.Struct(">cQqB")
_STATUS: Final = struct.Struct(">cQQQqB")
POSTGRES_EPOCH_US: Final = 946_684_800_000_000
"""2000-01-01 in microseconds since 1970."""

FRAME_BYTES_MAX: Final = 1 << 30
"""The most that PostgreSQL puts into one message."""


@dataclass(frozen=True, slots=True)
class WalMessage:
    """A message of the output plugin. ``wal_start`` is the position of the change, ``wal_end`` that of the server."""

    wal_start: int
    wal_end: int
    message: bytes


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Everything that was committed before ``wal_end`` and is for this stream has been sent."""

    wal_end: int
    wants_reply: bool


class ProtocolError(ConnectError):
    """The server sent something that the replication protocol does not have."""


def frame_of(data: bytes) -> WalMessage | Keepalive:
    """Raises `ProtocolError`."""
    kind = data[:1]
    if kind == b"w" and len(data) >= _XLOG_DATA.size:
        _, start, end, _ = _XLOG_DATA.unpack_from(data)
        return WalMessage(start, end, data[_XLOG_DATA.size :])
    if kind == b"k" and len(data) == _KEEPALIVE.size:
        _, end, _, wants_reply = _KEEPALIVE.unpack(data)
        return Keepalive(end, bool(wants_reply))
    raise ProtocolError(f"the replication stream has a frame of kind {kind!r} with {len(data)} bytes")


def status_update(*, written: int, flushed: int, now_us: int, wants_reply: bool = False) -> bytes:
    """What this side has: everything before ``flushed`` need not be kept for it. ``now_us`` counts from 1970."""
    return _STATUS.pack(b"r", written, flushed, flushed, now_us - POSTGRES_EPOCH_US, wants_reply)
