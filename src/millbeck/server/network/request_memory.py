"""Memory for requests that have not arrived whole and for replies that are not taken, bounded over all connections.

A request that comes in one piece needs none. When half-received ones together hold more than the limit
(``queued.max.request.bytes``, or 256 MiB where that is not set), connections that want more are not read until others
are done. One of them may always go on, so requests keep completing even when every connection waits; those that make
no progress are closed by the deadline for it.

A reply that its reader takes at once counts for nothing. When those that wait for slow readers together hold more than
the limit, the connection that holds the most is closed: no other way gives memory back, and one reply of one client may
be as large as all of another's. Slices of files are not counted, they are not in memory.
"""

from __future__ import annotations

from typing import Final, Protocol

DEFAULT_LIMIT_BYTES: Final = 256 * 1024 * 1024


class Holder(Protocol):
    def read_on(self) -> None:
        """There is room again."""


class RequestMemory:
    __slots__ = ("_favoured", "_waiting", "held_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int = -1) -> None:
        self.limit_bytes = limit_bytes if limit_bytes > 0 else DEFAULT_LIMIT_BYTES
        self.held_bytes = 0
        self._waiting: dict[Holder, None] = {}
        self._favoured: Holder | None = None

    def changed(self, holder: Holder, before_bytes: int, now_bytes: int) -> bool:
        """A connection holds more or less than before; False when it must wait for `Holder.read_on`."""
        self.held_bytes += now_bytes - before_bytes
        if now_bytes == 0:
            self._let_go(holder)
            return True
        if self.held_bytes <= self.limit_bytes or holder is self._favoured:
            return True
        if self._favoured is None:
            self._favoured = holder
            return True
        self._waiting[holder] = None
        return False

    def _let_go(self, holder: Holder) -> None:
        self._waiting.pop(holder, None)
        if self._favoured is holder:
            self._favoured = None
        while self._waiting and (self.held_bytes <= self.limit_bytes or self._favoured is None):
            following = next(iter(self._waiting))
            del self._waiting[following]
            if self.held_bytes > self.limit_bytes:
                self._favoured = following
            following.read_on()


class SlowReader(Protocol):
    def close(self, reason: str) -> None:
        """Drop the connection and everything it holds."""


class ReplyMemory:
    __slots__ = ("_holders", "closed_count", "held_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.closed_count = 0
        self._holders: dict[SlowReader, int] = {}

    def holds(self, holder: SlowReader, size_bytes: int) -> None:
        """A connection's replies take this much memory now; whoever holds the most may be closed here."""
        self.held_bytes += size_bytes - self._holders.pop(holder, 0)
        if size_bytes:
            self._holders[holder] = size_bytes
        while self.held_bytes > self.limit_bytes:
            largest = max(self._holders, key=self._holders.__getitem__)
            self.held_bytes -= self._holders.pop(largest)
            self.closed_count += 1
            largest.close(f"replies that are not read hold more than {self.limit_bytes} bytes, its own the most of all")
