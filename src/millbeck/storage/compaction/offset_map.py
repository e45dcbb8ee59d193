"""Which records of the dirty part of a log are the latest of their keys, in bounded memory.

Records are numbered as the first pass meets them. A key's entry is the number of its latest record, and every record
that a later one makes needless is marked at once; so the second pass asks the marks about a dirty record, and the keys
only about clean ones, of which it needs to know no more than whether the key is there.

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
NOT_NOTED: Final = -1


class OffsetMap:
    __slots__ = ("_key_bytes", "dead", "first_offset", "latest", "latest_offset", "limit_bytes")

    def __init__(self, first_offset: int, limit_bytes: int) -> None:
        """``first_offset`` is where the dirty part begins."""
        self.first_offset = first_offset
        self.limit_bytes = limit_bytes
        self.latest: dict[bytes, int] = {}
        """The number of the latest record of each key."""
        self.dead = bytearray()
        """A byte for each record by its number: not 0 when it is needless."""
        self.latest_offset = first_offset - 1
        """Everything up to it was noted; nothing beyond it is decided by this map."""
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
        """The number of a key's latest record, `NOT_NOTED` when there is none."""
        return self.latest.get(key, NOT_NOTED)

    def has_room(self, record_count: int, size_bytes: int) -> bool:
        """Whether a batch of so many records fits even if all their keys are new."""
        if not self.dead:
            return True
        return self.size_bytes + size_bytes + record_count * (ENTRY_BYTES + 1) <= self.limit_bytes

    def add(self, payload: bytes, count: int, base_offset: int) -> bool:
        """Note a batch's records from the first offset on; False when they are malformed."""
        problem, key_bytes, _ = gather(payload, 0, count, base_offset, self.first_offset, self.latest, self.dead)
        self._key_bytes += key_bytes
        return problem == 0
