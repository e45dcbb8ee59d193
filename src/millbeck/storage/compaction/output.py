"""Writer of one new segment: its ``.log`` and indexes, under their ``.cleaned`` names.

Batches are buffered and written in large pieces. Index entries follow the same rule as for appends, so lookups in a
compacted segment work as in any other. `finish` syncs the files; the caller syncs the directory once for all segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millbeck.kernel.environment import Bytes, Files, OpenMode
from millbeck.kernel.units import MIB
from millbeck.storage import txn_index
from millbeck.storage.atomic_file import write_file
from millbeck.storage.compaction.job import NewSegment, Throttle, UncleanableLog
from millbeck.storage.offset_index import OffsetIndex
from millbeck.storage.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, file_name
from millbeck.storage.time_index import NO_TIMESTAMP, TimeIndex
from millbeck.storage.txn_index import AbortedTransaction

CLEANED_SUFFIX: Final = ".cleaned"
_WRITE_BYTES: Final = 1 * MIB
_SIZE_MAX: Final = 2**31 - 1


class Output:
    __slots__ = (
        "_base_offset",
        "_directory",
        "_file",
        "_files",
        "_index_interval_bytes",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offset_index",
        "_parts",
        "_parts_bytes",
        "_since_index",
        "_throttle",
        "_time_index",
        "_written",
        "aborted",
        "size",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        *,
        index_size_max: int,
        index_interval_bytes: int,
        throttle: Throttle,
    ) -> None:
        """Create the files, overwriting the leftovers of an interrupted compaction. Raises OSError."""
        self._files = files
        self._directory = directory
        self._base_offset = base_offset
        self._index_interval_bytes = index_interval_bytes
        self._throttle = throttle
        self._offset_index = OffsetIndex(base_offset, index_size_max)
        self._time_index = TimeIndex(base_offset, index_size_max)
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
        self._since_index = 0
        self._parts: list[Bytes] = []
        self._parts_bytes = 0
        self._written = 0
        self.size = 0
        self.aborted: list[AbortedTransaction] = []
        """Aborted transactions whose abort markers are in this segment and still needed."""
        self._file = files.open(self._path(LOG_SUFFIX), OpenMode.WRITE)
        self._file.truncate(0)

    def note(self, last_offset: int, max_timestamp: int, size: int) -> None:
        """Index the next batch; `add` is then called with its bytes, or with those of several batches at once."""
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if self._since_index > self._index_interval_bytes:
            self._offset_index.append(last_offset, self.size)
            self._time_index.append_if_later(self._max_timestamp, self._max_timestamp_offset)
            self._since_index = 0
        self._since_index += size
        self.size += size
        if self.size > _SIZE_MAX:
            raise UncleanableLog(self._path(LOG_SUFFIX), self.size, "the compacted segment would be too large")

    def add(self, part: Bytes) -> None:
        """Append the bytes of batches that were passed to `note`, in order. Raises OSError."""
        self._parts.append(part)
        self._parts_bytes += len(part)
        if self._parts_bytes >= _WRITE_BYTES:
            self._write()

    def finish(self, source_count: int) -> NewSegment:
        """Write the remaining bytes and the indexes, sync, and close. Raises OSError."""
        self._write()
        self._file.sync()
        self._file.close()
        self._time_index.append_if_later(self._max_timestamp, self._max_timestamp_offset)
        small: Sequence[tuple[str, Bytes]] = [
            (INDEX_SUFFIX, self._offset_index.content),
            (TIME_INDEX_SUFFIX, self._time_index.content),
            (TXN_INDEX_SUFFIX, txn_index.encode(self.aborted)),
        ]
        for suffix, content in small:
            if content or suffix != TXN_INDEX_SUFFIX:
                write_file(self._files, self._path(suffix), bytes(content), sync=True)
        return NewSegment(
            base_offset=self._base_offset,
            source_count=source_count,
            size=self.size,
            max_timestamp=self._max_timestamp,
            max_timestamp_offset=self._max_timestamp_offset,
            has_aborted=bool(self.aborted),
        )

    def close(self) -> None:
        """Close the file, finished or not."""
        self._file.close()

    def _write(self) -> None:
        if self._parts:
            self._throttle(self._parts_bytes)
            self._file.write(self._parts, self._written)
            self._written += self._parts_bytes
            self._parts = []
            self._parts_bytes = 0

    def _path(self, suffix: str) -> str:
        return f"{self._directory}/{file_name(self._base_offset, suffix)}{CLEANED_SUFFIX}"
