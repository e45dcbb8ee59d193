"""The histories of one partition as a tree: each batch of any replica, after the batch that preceded it.

A batch is identified by its place in the tree: two replicas that have the same one have the same prefix. So agreement
up to an offset is the comparison of two numbers, however long the logs are.

``committed`` is the path through the tree that some replica has declared committed, by its high watermark.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

ROOT: Final = 0
UNKNOWN_PREFIX: Final = -1


class ReplicaBatch(NamedTuple):
    """A batch as a replica has it. ``place`` identifies it and everything before it."""

    base_offset: int
    next_offset: int
    epoch: int
    checksum: int
    place: int


class BatchTree:
    """``committed_end`` is the end of the committed batches, ``committed_place`` the place of the last one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.committed_end = 0
        self.committed_place = ROOT
        self._places: dict[tuple[int, int, int, int, int], int] = {}
        self._by_epoch: dict[tuple[int, int], ReplicaBatch] = {}
        self._committed_ends: list[int] = []
        self._committed_places: list[int] = []

    def place(self, before: int, base_offset: int, next_offset: int, epoch: int, checksum: int) -> int:
        """The place of a batch that follows ``before``; if its prefix is unknown, the place of an equal batch."""
        if before == UNKNOWN_PREFIX:
            known = self._by_epoch.get((base_offset, epoch))
            return known.place if known is not None and known.checksum == checksum else UNKNOWN_PREFIX
        key = (before, base_offset, next_offset, epoch, checksum)
        return self._places.setdefault(key, len(self._places) + 1)

    def contradiction(self, entry: ReplicaBatch) -> ReplicaBatch | None:
        """A contradicting batch: another one with the same offset and epoch, or the same one after another prefix; None
        if there is none.
        """
        if entry.place == UNKNOWN_PREFIX:
            return None
        known = self._by_epoch.setdefault((entry.base_offset, entry.epoch), entry)
        return None if known.place == entry.place else known

    def commit(self, entry: ReplicaBatch) -> int | None:
        """Record that a replica's high watermark has passed this batch; returns the place that was committed there
        before, if it differs.

        Batches are passed in order; those before the known end are compared, later ones are new.
        """
        if entry.next_offset > self.committed_end:
            self.committed_end = entry.next_offset
            self.committed_place = entry.place
            self._committed_ends.append(entry.next_offset)
            self._committed_places.append(entry.place)
            return None
        place = self.committed_at(entry.next_offset)
        return None if place in (entry.place, UNKNOWN_PREFIX) or entry.place == UNKNOWN_PREFIX else place

    def committed_at(self, end_offset: int) -> int:
        """The committed batch that ends at this offset; `UNKNOWN_PREFIX` when no commit ended exactly there."""
        index = bisect_left(self._committed_ends, end_offset)
        if index < len(self._committed_ends) and self._committed_ends[index] == end_offset:
            return self._committed_places[index]
        return UNKNOWN_PREFIX
