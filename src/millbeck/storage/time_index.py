"""The time index of a segment (the ``.timeindex`` file): a sparse map from timestamp to offset.

Entries are 12 bytes, big endian: timestamp (int64) and relative offset (int32). An entry means that no batch up to and
including that offset has a larger timestamp. Timestamps strictly ascend. The last entry of a sealed segment always has
its largest timestamp. The content in memory equals the content of the file.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from millbeck.kernel.environment import Bytes
from millbeck.storage.offset_index import CorruptIndex

ENTRY_SIZE: Final = 12
NO_TIMESTAMP: Final = -1

_ENTRY: Final = Struct(">qi")


class TimeIndex:
    __slots__ = ("base_offset", "content", "last_offset", "last_timestamp", "size_bytes_max")

    def __init__(self, base_offset: int, size_bytes_max: int, content: Bytes = b"") -> None:
        self.base_offset = base_offset
        self.size_bytes_max = size_bytes_max - size_bytes_max % ENTRY_SIZE
        self.content = bytearray(content)
        self.last_timestamp = NO_TIMESTAMP
        self.last_offset = base_offset
        self._read_last()

    @classmethod
    def load(cls, base_offset: int, size_bytes_max: int, content: Bytes) -> TimeIndex:
        """Load an index from its file. Raises `CorruptIndex` when its size or its last entries are invalid."""
        if len(content) % ENTRY_SIZE:
            raise CorruptIndex(f"{len(content)} bytes are not a whole number of time index entries")
        index = cls(base_offset, size_bytes_max, content)
        if content and (index.last_offset < base_offset or index.last_timestamp < 0):
            raise CorruptIndex(f"the last entry is timestamp {index.last_timestamp} at offset {index.last_offset}")
        if len(content) > ENTRY_SIZE and _ENTRY.unpack_from(content, 0)[0] >= index.last_timestamp:
            raise CorruptIndex("its timestamps do not ascend")
        return index

    @property
    def entry_count(self) -> int:
        return len(self.content) // ENTRY_SIZE

    @property
    def is_full(self) -> bool:
        # One entry is reserved for the largest timestamp, which is written when the segment is sealed.
        return len(self.content) >= self.size_bytes_max - ENTRY_SIZE

    def entries(self) -> list[tuple[int, int]]:
        return [(timestamp, self.base_offset + relative) for timestamp, relative in _ENTRY.iter_unpack(self.content)]

    def append_if_later(self, timestamp: int, offset: int) -> bool:
        """Add an entry if the timestamp is above the last one; returns whether it was added."""
        if timestamp <= self.last_timestamp or offset < self.last_offset:
            return False
        self.content += _ENTRY.pack(timestamp, offset - self.base_offset)
        self.last_timestamp = timestamp
        self.last_offset = offset
        return True

    def offset_before(self, timestamp: int) -> int:
        """An offset at or before the first batch that may have a timestamp of at least ``timestamp``."""
        unpack_from, content = _ENTRY.unpack_from, self.content
        low, high = 0, len(content) // ENTRY_SIZE
        while low < high:
            middle = (low + high) // 2
            if unpack_from(content, middle * ENTRY_SIZE)[0] <= timestamp:
                low = middle + 1
            else:
                high = middle
        if not low:
            return self.base_offset
        # An entry with exactly this timestamp points to the first batch that has it, so an equal one may be used too.
        relative: int = unpack_from(content, (low - 1) * ENTRY_SIZE)[1]
        return self.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at or above ``offset``."""
        relative_limit = offset - self.base_offset
        count = self.entry_count
        while count and _ENTRY.unpack_from(self.content, (count - 1) * ENTRY_SIZE)[1] >= relative_limit:
            count -= 1
        del self.content[count * ENTRY_SIZE :]
        self._read_last()

    def _read_last(self) -> None:
        self.last_timestamp, self.last_offset = NO_TIMESTAMP, self.base_offset
        if len(self.content) >= ENTRY_SIZE:
            end = len(self.content) - len(self.content) % ENTRY_SIZE
            timestamp, relative = _ENTRY.unpack_from(self.content, end - ENTRY_SIZE)
            self.last_timestamp, self.last_offset = timestamp, self.base_offset + relative
