"""The latest offset of each key in the dirty part of a log, in bounded memory.

Keys are kept whole, so two keys are never taken for one: Kafka keeps a 16-byte digest of each and accepts that a
collision would drop a record. What an entry costs is counted, not measured, from what Python's objects take; when the
next batch might exceed the bound the map is full, and ends with the batch before. The first batch is always taken, or
there would be no end to rounds that gather nothing; it is bounded by what a batch may hold.
"""

from __future__ import annotations

from typing import Final

from millbeck.records.kernels.compaction import gather

ENTRY_BYTES: Final = 33 + 32 + 64
"""A bytes object and an integer without their content, and their share of the table."""
NO_OFFSET: Final = -1


class OffsetMap:
    __slots__ = ("_key_bytes", "latest", "latest_offset", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.latest: dict[bytes, int] = {}
        self.latest_offset = NO_OFFSET
        """Everything up to it was noted; nothing beyond it is decided by this map."""
        self._key_bytes = 0

    @property
    def entry_count(self) -> int:
        return len(self.latest)

    @property
    def size_bytes(self) -> int:
        return self._key_bytes + len(self.latest) * ENTRY_BYTES

    @property
    def utilization(self) -> float:
        return self.size_bytes / self.limit_bytes if self.limit_bytes else 1.0

    def get(self, key: bytes) -> int:
        """The latest offset of a key, `NO_OFFSET` when it was not noted."""
        return self.latest.get(key, NO_OFFSET)

    def has_room(self, record_count: int, size_bytes: int) -> bool:
        """Whether a batch of so many records fits even if all their keys are new."""
        return not self.latest or self.size_bytes + size_bytes + record_count * ENTRY_BYTES <= self.limit_bytes

    def add(self, payload: bytes, start: int, count: int, base_offset: int, first_offset: int) -> bool:
        """Note a batch's records from ``first_offset`` on; False when they are malformed."""
        problem, key_bytes, _ = gather(payload, start, count, base_offset, first_offset, self.latest)
        self._key_bytes += key_bytes
        return problem == 0
