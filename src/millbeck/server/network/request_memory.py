"""Bounds on the memory of incomplete requests and of unsent replies, over all connections.

A request that arrives whole needs none. When incomplete requests together exceed the limit
(``queued.max.request.bytes``, or 256 MiB where that is not set), connections that need more memory are not read until
others complete. One of them may always continue, so requests keep completing even when every connection waits;
connections without progress are closed by their timeout.

A reply that is sent at once is not counted. When replies to slow readers together exceed the limit, the connection that
holds the most is closed: nothing else frees memory, and one reply of one client may be as large as all replies of
another. File slices are not counted, because they are not in memory.
"""

from __future__ import annotations

from typing import Final, Protocol

DEFAULT_LIMIT_BYTES: Final = 256 * 1024 * 1024


class PausedReader(Protocol):
    def read_on(self) -> None:
        """Continue reading: memory is available again."""


class RequestMemory:
    __slots__ = ("_exempt", "_waiting", "held_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int = -1) -> None:
        self.limit_bytes = limit_bytes if limit_bytes > 0 else DEFAULT_LIMIT_BYTES
        self.held_bytes = 0
        self._waiting: dict[PausedReader, None] = {}
        self._exempt: PausedReader | None = None

    def changed(self, holder: PausedReader, before_bytes: int, now_bytes: int) -> bool:
        """Account a change of a connection's memory; False when it must wait for `PausedReader.read_on`."""
        self.held_bytes += now_bytes - before_bytes
        if now_bytes == 0:
            self._freed(holder)
            return True
        if self.held_bytes <= self.limit_bytes or holder is self._exempt:
            return True
        if self._exempt is None:
            self._exempt = holder
            return True
        self._waiting[holder] = None
        return False

    def _freed(self, holder: PausedReader) -> None:
        self._waiting.pop(holder, None)
        if self._exempt is holder:
            self._exempt = None
        while self._waiting and (self.held_bytes <= self.limit_bytes or self._exempt is None):
            following = next(iter(self._waiting))
            del self._waiting[following]
            if self.held_bytes > self.limit_bytes:
                self._exempt = following
            following.read_on()


class ReplyHolder(Protocol):
    def close(self, reason: str) -> None:
        """Close the connection and free its memory."""


class ReplyMemory:
    __slots__ = ("_holders", "closed_count", "held_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.closed_count = 0
        self._holders: dict[ReplyHolder, int] = {}

    def holds(self, holder: ReplyHolder, size_bytes: int) -> None:
        """Set the memory of a connection's unsent replies; above the limit, close the one that holds the most."""
        self.held_bytes += size_bytes - self._holders.pop(holder, 0)
        if size_bytes:
            self._holders[holder] = size_bytes
        while self.held_bytes > self.limit_bytes:
            largest = max(self._holders, key=self._holders.__getitem__)
            self.held_bytes -= self._holders.pop(largest)
            self.closed_count += 1
            largest.close(
                f"unsent replies of all connections exceed {self.limit_bytes} bytes, and this connection holds the most"
            )
