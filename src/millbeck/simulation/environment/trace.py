"""A digest of all events of a run: equal seeds must give equal digests."""

from __future__ import annotations

import hashlib
import zlib
from collections import deque
from collections.abc import Callable


class Trace:
    """The trace of a run. Events are strings, numbers and bytes (as checksums); the last ones are kept for the report
    of a failure."""

    __slots__ = ("_hash", "_recent", "_time", "event_count")

    def __init__(self, time: Callable[[], float], kept_count: int = 200) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._recent: deque[tuple[object, ...]] = deque(maxlen=kept_count)
        self._time = time
        self.event_count = 0

    def add(self, *event: str | int | float | bytes) -> None:
        self.event_count += 1
        entry: tuple[object, ...] = (
            self._time(),
            *[(len(item), zlib.crc32(item)) if isinstance(item, bytes) else item for item in event],
        )
        self._hash.update(repr(entry).encode())
        self._recent.append(entry)

    def digest(self) -> str:
        return self._hash.hexdigest()

    def recent(self) -> list[str]:
        return [f"{entry[0]:.6f} " + " ".join(map(str, entry[1:])) for entry in self._recent]
