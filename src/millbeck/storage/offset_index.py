"""The offset index of a segment (the ``.index`` file): a sparse map from offset to file position.

Entries are 8 bytes, big endian: last offset of a batch relative to the segment's base offset (int32) and the position
at which that batch begins (int32). An entry is added whenever more than ``index.interval.bytes`` were written since
the last one, so a lookup ends with a short scan of batch headers. The content in memory equals the content of the
file. Kafka preallocates this file and trims it on roll; this one never holds more than its entries.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from millbeck.kernel.environment import Bytes

ENTRY_SIZE: Final = 8
RELATIVE_OFFSET_MAX: Final = 2**31 - 1

_ENTRY: Final = Struct(">ii")


class CorruptIndex(Exception):
    """An index file that is not a valid index of its segment and must be rebuilt from the log."""


class OffsetIndex:
    __slots__ = ("base_offset", "content", "size_bytes_max")

    def __init__(self, base_offset: int, size_bytes_max: int, content: Bytes = b"") -> None:
        self.base_offset = base_offset
        self.size_bytes_max = size_bytes_max - size_bytes_max % ENTRY_SIZE
        self.content = bytearray(content)

    @classmethod
    def load(cls, base_offset: int, size_bytes_max: int, content: Bytes, log_size_bytes: int) -> OffsetIndex:
        """Load an index from its file. Raises `CorruptIndex` when its size or its last entry is invalid."""
        index = cls(base_offset, size_bytes_max, content)
        if len(content) % ENTRY_SIZE:
            raise CorruptIndex(f"{len(content)} bytes are not a whole number of offset index entries")
        if content:
            relative, position = _ENTRY.unpack_from(content, len(content) - ENTRY_SIZE)
            if relative <= 0 or not 0 < position < log_size_bytes:
                raise CorruptIndex(f"the last entry points to offset {base_offset + relative}, position {position}")
        return index

    @property
    def entry_count(self) -> int:
        return len(self.content) // ENTRY_SIZE

    @property
    def is_full(self) -> bool:
        return len(self.content) >= self.size_bytes_max

    def entries(self) -> list[tuple[int, int]]:
        return [(self.base_offset + relative, position) for relative, position in _ENTRY.iter_unpack(self.content)]

    def last_entry(self) -> tuple[int, int]:
        """The last (offset, position), or the segment's base offset and position 0 when there is none."""
        if not self.content:
            return self.base_offset, 0
        relative, position = _ENTRY.unpack_from(self.content, len(self.content) - ENTRY_SIZE)
        return self.base_offset + relative, position

    def append(self, offset: int, position: int) -> None:
        self.content += _ENTRY.pack(offset - self.base_offset, position)

    def position_for(self, offset: int) -> int:
        """A batch boundary at or before the first batch whose last offset is at least ``offset``."""
        low = self._count_at_most(0, offset - self.base_offset)
        return self._value(low - 1, 1) if low else 0

    def entry_at_most(self, position: int) -> tuple[int, int] | None:
        """The last (offset, position) whose position is not above ``position``."""
        low = self._count_at_most(1, position)
        if not low:
            return None
        relative, found = _ENTRY.unpack_from(self.content, (low - 1) * ENTRY_SIZE)
        return self.base_offset + relative, found

    def truncate_to(self, offset: int) -> None:
        """Remove the entries of batches whose last offset is at or above ``offset``."""
        del self.content[self._count_at_most(0, offset - self.base_offset - 1) * ENTRY_SIZE :]

    def _value(self, index: int, column: int) -> int:
        value: int = _ENTRY.unpack_from(self.content, index * ENTRY_SIZE)[column]
        return value

    def _count_at_most(self, column: int, limit: int) -> int:
        """The number of entries with a value of at most ``limit`` in a column; both columns ascend."""
        unpack_from, content = _ENTRY.unpack_from, self.content
        low, high = 0, len(content) // ENTRY_SIZE
        while low < high:
            middle = (low + high) // 2
            if unpack_from(content, middle * ENTRY_SIZE)[column] <= limit:
                low = middle + 1
            else:
                high = middle
        return low
