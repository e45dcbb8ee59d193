"""Memory limit for the indexes of sealed segments, which are loaded on demand and dropped in the order they were
added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.units import MIB

if TYPE_CHECKING:
    from millbeck.storage.segment import Segment


class IndexCache:
    __slots__ = ("_sizes", "limit_bytes", "size_bytes")

    def __init__(self, limit_bytes: int = 16 * MIB) -> None:
        self._sizes: dict[Segment, int] = {}
        self.limit_bytes = limit_bytes
        self.size_bytes = 0

    def remember(self, segment: Segment) -> None:
        """Count the indexes of ``segment``, which have been loaded or may be dropped from now on; above the limit, drop
        those of other segments."""
        self.forget(segment)
        size = segment.index_memory_bytes
        self._sizes[segment] = size
        self.size_bytes += size
        while self.size_bytes > self.limit_bytes and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.forget(oldest)
            oldest.drop_indexes()

    def forget(self, segment: Segment) -> None:
        self.size_bytes -= self._sizes.pop(segment, 0)
