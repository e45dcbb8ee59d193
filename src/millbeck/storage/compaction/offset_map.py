"""The offset map of compaction: which dirty records are the latest of their keys, in bounded memory.

Records are numbered in the order in which the first pass reads them. The entry of a key is the number of its latest
record, and every superseded record is marked at once. The second pass therefore looks up a dirty record by its mark
and a clean record by its key, for which it only needs to know whether the key is in the map.

Keys are stored whole, so two keys never collide: Kafka stores a 16-byte digest of each and accepts that a collision
would drop a record. The memory of an entry is estimated from the sizes of Python objects, not measured. When the next
batch might exceed the limit the map is full, and ends with the batch before. The first batch is always accepted, or
rounds without progress would repeat forever; its size is bounded by the batch size limit.
"""

from __future__ import annotations

from typing import Final

from millbeck.records.native.compaction import gather

ENTRY_BYTES: Final = 33 + 32 + 64
"""Size of a bytes object and an integer without their content, plus their share of the dict's table."""
NO_OFFSET: Final = -1
NOT_NOTED: Final = -1


class OffsetMap:
    __slots__ = ("_key_bytes", "dead", "first_offset", "latest", "latest_offset", "limit_bytes")

    def __init__(self, first_offset: int, limit_bytes: int) -> None:
        """``first_offset`` is the first dirty offset."""
        self.first_offset = first_offset
        self.limit_bytes = limit_bytes
        self.latest: dict[bytes, int] = {}
        """The number of the latest record of each key."""
        self.dead = bytearray()
        """One byte per record, indexed by its number: non-zero when a later record supersedes it."""
        self.latest_offset = first_offset - 1
        """The last offset in the map; records with higher offsets are kept."""
        self._key_bytes = 0

    @property
    def entry_count(self) -> int:
        return len(self.latest)

    @property
    def size_bytes(self) -> int:
        return self._key_bytes + len(self.latest) * ENTRY_BYTES + len(self.dead)

    @property
    def utilization(self) -> float:
        return self.size_bytes / self.limit_bytes if self.limit_bytes else 1.0

    def get(self, key: bytes) -> int:
        """The number of the key's latest record, or `NOT_NOTED`."""
        return self.latest.get(key, NOT_NOTED)

    def has_room(self, record_count: int, size_bytes: int) -> bool:
        """Whether a batch with this many records fits even if all its keys are new."""
        if not self.dead:
            return True
        return self.size_bytes + size_bytes + record_count * (ENTRY_BYTES + 1) <= self.limit_bytes

    def add(self, payload: bytes, count: int, base_offset: int) -> bool:
        """Add a batch's records at or above the first offset; False when they are malformed."""
        problem, key_bytes, _ = gather(payload, 0, count, base_offset, self.first_offset, self.latest, self.dead)
        self._key_bytes += key_bytes
        return problem == 0
