"""The observer's copy of one replica's log: its batches, read from the page cache as they are written.

Only the fixed fields of a batch are read, once. A shadow log outlives the process, as the log does.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import Final

from millbeck.records.crc import crc32c
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.inode import Inode
from millbeck.simulation.observer.lineage import ROOT, UNKNOWN_PREFIX, BatchTree, ReplicaBatch
from millbeck.storage.log import Log

_FIELDS: Final = struct.Struct(">qiibIhi")
_OVERHEAD: Final = 12
_CHECKSUM_FROM: Final = 21


class ShadowLog:
    """``entries`` are the batches from the first segment on; ``end_offset`` is the end when last read."""

    def __init__(self, disk: SimDisk, lineage: BatchTree) -> None:
        self.disk = disk
        self.lineage = lineage
        self.entries: list[ReplicaBatch] = []
        self.start_offset = 0
        self._resume = ("", 0)
        """The position to continue reading from when no batch is left."""
        self.end_offset = 0
        self.flushed_offset = 0
        self._bases: list[int] = []
        self._cursors: list[tuple[str, int]] = []
        self._log: Log | None = None

    def is_of(self, log: Log) -> bool:
        return self._log is log

    def begin(self, log: Log) -> list[ReplicaBatch]:
        """Read the log again because another process has opened it; returns its batches."""
        self._log = log
        self.entries, self._bases, self._cursors = [], [], []
        self.end_offset = log.segments[0].base_offset
        return self.grow(log)

    def cut(self, end_offset: int) -> list[ReplicaBatch]:
        """Truncate this copy because the log was truncated to this offset; returns the removed batches."""
        index = bisect_right(self._bases, end_offset)
        while index and self.entries[index - 1].next_offset > end_offset:
            index -= 1
        gone = self.entries[index:]
        del self.entries[index:], self._bases[index:], self._cursors[index:]
        self._ends_at(end_offset)
        return gone

    def _ends_at(self, end_offset: int) -> None:
        """Set the end of the log; if the log restarted beyond its previous end, no batches are kept."""
        if self.entries and self.entries[-1].next_offset != end_offset:
            self.entries, self._bases, self._cursors = [], [], []
        self.end_offset = end_offset

    def grow(self, log: Log) -> list[ReplicaBatch]:
        """Read new batches up to the end of the log."""
        first = len(self.entries)
        self.start_offset = log.log_start_offset
        place = self.entries[-1].place if self.entries else self._place_before()
        read_path, read_upto = self._cursors[-1] if self._cursors else self._resume
        for segment in log.segments:
            path = segment.log_path
            if path == read_path or segment.base_offset >= self.end_offset:
                place = self._read(path, read_upto if path == read_path else 0, log.end_offset, place)
            if self.end_offset >= log.end_offset:
                break
        new = self.entries[first:]
        self._ends_at(log.end_offset)
        return new

    def _place_before(self) -> int:
        """The place before an empty log; a snapshot stands for everything committed before it."""
        return ROOT if self.end_offset == 0 else self.lineage.committed_at(self.end_offset)

    def starts_at(self, offset: int) -> None:
        """Drop the batches before the new start of the log; all of them if the log was recreated."""
        self.start_offset = offset
        index = bisect_right(self._bases, offset - 1)
        if index and index == len(self._cursors):
            # The log continues in the middle of a file, after batches that are no longer part of it.
            self._resume = self._cursors[-1]
        del self.entries[:index], self._bases[:index], self._cursors[:index]

    def _read(self, path: str, position: int, upto_offset: int, place: int) -> int:
        inode = self.disk.find(path)
        assert isinstance(inode, Inode)
        content = inode.content
        while self.end_offset < upto_offset and position + _FIELDS.size <= len(content):
            base_offset, length, epoch, _, checksum, _, delta = _FIELDS.unpack_from(content, position)
            if length <= 0 or base_offset < self.end_offset:
                break
            if base_offset > self.end_offset:
                place = UNKNOWN_PREFIX
            next_offset = base_offset + delta + 1
            position += _OVERHEAD + length
            place = self.lineage.place(place, base_offset, next_offset, epoch, checksum)
            self.entries.append(ReplicaBatch(base_offset, next_offset, epoch, checksum, place))
            self._bases.append(base_offset)
            self._cursors.append((path, position))
            self.end_offset = next_offset
        return place

    def upto(self, end_offset: int) -> ReplicaBatch | None:
        """The batch that ends at ``end_offset``, if there is one."""
        index = bisect_right(self._bases, end_offset - 1) - 1
        if index >= 0 and self.entries[index].next_offset == end_offset:
            return self.entries[index]
        return None

    def between(self, start_offset: int, end_offset: int) -> list[ReplicaBatch]:
        """The batches in a range of offsets."""
        first = bisect_right(self._bases, start_offset - 1)
        return [entry for entry in self.entries[first:] if entry.next_offset <= end_offset]

    def has_committed(self, end_offset: int) -> bool:
        """Whether the log, or a snapshot before it, has everything committed below ``end_offset``."""
        if end_offset <= self.start_offset:
            return True
        entry = self.upto(end_offset)
        if entry is None or self.end_offset < end_offset:
            return False
        place = self.lineage.committed_at(end_offset)
        return UNKNOWN_PREFIX in (place, entry.place) or entry.place == place

    def common_end(self, other: ShadowLog, entries: list[ReplicaBatch]) -> int:
        """The offset up to which ``entries`` equal those of the other log; -1 if none do."""
        theirs = {entry.place: None for entry in other.entries if entry.place != UNKNOWN_PREFIX}
        common = -1
        for entry in entries:
            if entry.place not in theirs:
                break
            common = entry.next_offset
        return common

    def checked_bit(self, fraction: float) -> tuple[str, int] | None:
        """A bit covered by a batch's checksum, with its file, chosen by ``fraction``; None if the log is empty.

        No checksum covers the offset and the epoch, so a change of these could not be detected. The fixed fields after
        them are covered, but are not chosen either, because this shadow log needs them when it reads the log again.
        """
        if not self.entries:
            return None
        index = int(fraction * len(self.entries))
        path, end = self._cursors[index]
        begin = self._begin_of(self.entries[index], path) + _FIELDS.size
        return path, 8 * begin + int((fraction * 7919 % 1) * 8 * (end - begin))

    def is_whole(self, upto_offset: int) -> bool:
        """Whether the checksums on disk below ``upto_offset`` are correct; corruption is not detected otherwise."""
        for entry, (path, end) in zip(self.entries, self._cursors, strict=True):
            if entry.next_offset > upto_offset:
                break
            if not self._is_sound(entry, path, end):
                return False
        return True

    def _is_sound(self, entry: ReplicaBatch, path: str, end: int) -> bool:
        try:
            inode = self.disk.find(path)
        except OSError:
            return False
        assert isinstance(inode, Inode)
        begin = self._begin_of(entry, path)
        data = bytes(inode.content[begin:end])
        if len(data) < _FIELDS.size:
            return False
        base_offset, length, _, _, checksum, _, _ = _FIELDS.unpack_from(data)
        is_in_place = base_offset == entry.base_offset and length == len(data) - _OVERHEAD
        return bool(is_in_place and checksum == entry.checksum == crc32c(data[_CHECKSUM_FROM:]))

    def _begin_of(self, entry: ReplicaBatch, path: str) -> int:
        index = bisect_right(self._bases, entry.base_offset) - 2
        return self._cursors[index][1] if index >= 0 and self._cursors[index][0] == path else 0
