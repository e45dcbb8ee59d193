"""Positions of cold readers, whose data is on disk: their next read goes to a thread at once.

Checking on the event loop whether data is in the page cache starts readahead, which needs memory. When memory is full,
as in a container at its limit, the kernel must reclaim pages first and may block the caller for 100 ms (docs/adr/0008).
So a reader whose data was not in the page cache is not checked again: its next fetch, which starts where the last one
ended, is read on a thread without a check.

A log of which only a few pages were reclaimed does not make its readers cold for long: each reader is classified once,
by the first `STRETCH_BYTES` it reads on threads, and counts as warm again if little of that came from the disk.
`STRETCH_BYTES` is more than the kernel's readahead. A cold reader stays cold up to the end of the file. That is the end
of the log, where it has caught up, or the end of a segment; the next segment is checked again. If readers switched for
every cached part, the event loop would check at each boundary, exactly when memory is short.
"""

from __future__ import annotations

from typing import Final

READERS_MAX: Final = 1024
STRETCH_BYTES: Final = 4 * 1024 * 1024
DISK_SHARE_MIN: Final = 8
"""At least one in this many bytes must come from the disk for a reader to stay cold."""
_JUDGED: Final = -1


class ColdReaders:
    __slots__ = ("_stops",)

    def __init__(self) -> None:
        self._stops: dict[tuple[str, int], tuple[int, int]] = {}
        """Bytes read and bytes read from the disk, by path and end position of the last read, until the reader is
        classified."""

    def __bool__(self) -> bool:
        return bool(self._stops)

    def expects(self, path: str, position: int) -> bool:
        """Whether a read at this position continues the last read of a cold reader."""
        return (path, position) in self._stops

    def moved(self, path: str, start: int, end: int, disk_bytes_now: int, *, is_at_end: bool) -> None:
        """Record a read on a thread: its range, the bytes that came from the disk, and whether it reached the end of
        the file."""
        read_before, disk_before = self._stops.pop((path, start), (0, 0))
        if is_at_end:
            return
        read_bytes, disk_bytes = _JUDGED, 0
        if read_before != _JUDGED:
            read_bytes, disk_bytes = read_before + end - start, disk_before + disk_bytes_now
            if read_bytes >= STRETCH_BYTES:
                if disk_bytes * DISK_SHARE_MIN < read_bytes:
                    return
                read_bytes = _JUDGED
        if len(self._stops) >= READERS_MAX:
            del self._stops[next(iter(self._stops))]
        self._stops[path, end] = read_bytes, disk_bytes
