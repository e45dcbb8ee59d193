"""Positions of cold readers, whose data is on disk: their next read goes to a thread at once.

Checking on the event loop whether data is in the page cache starts readahead, which needs memory. When memory is full,
as in a container at its limit, the kernel must reclaim pages first and may block the caller for 100 ms (docs/adr/0008).
So a reader that was found cold is not checked again: its next fetch, which starts where the last one ended, goes to a
thread straight away.

A log that is in the page cache but for a few reclaimed pages does not make its readers cold for long: a reader is
judged once, by the first `STRETCH_BYTES` it reads on threads, and is treated as warm again if little of that came from
the disk. `STRETCH_BYTES` is more than the kernel's readahead. A reader judged cold stays cold up to the end of the
file: the end of the log, where it has caught up, or of a segment, after which the next one is checked. Switching for
every cached part would check on the loop at each border, exactly when memory is short.
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
        """By path and end position of the last read: bytes read and bytes from the disk until the reader was judged."""

    def __bool__(self) -> bool:
        return bool(self._stops)

    def expects(self, path: str, position: int) -> bool:
        """Whether a read at this position continues one of a cold reader."""
        return (path, position) in self._stops

    def moved(self, path: str, start: int, end: int, disk_bytes_now: int, *, is_at_end: bool) -> None:
        """Note a read on a thread: its range, the bytes that came from the disk, and whether it reached the end of the
        file."""
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
