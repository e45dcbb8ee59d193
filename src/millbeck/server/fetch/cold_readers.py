"""Where readers that need the disk stopped, so that each goes on from there on a thread at once.

A try on the loop whether something is in memory starts its readahead, and readahead takes memory. Where memory is full,
as it is in a container that has read more than it may keep, whoever takes some must first find some to give back, and
the kernel may put it to sleep for 100 ms over that (docs/adr/0008). So a reader that was found cold is not tried again:
its next fetch, which begins where the last one ended, goes to a thread straight away.

A log that is in memory but for a few pages, which the kernel took back here and there, makes nobody cold for long: a
reader is judged once, by the first stretch it reads on threads, and is an ordinary one again when the disk had to bring
little of that. The stretch is longer than what the kernel reads ahead. Who was found cold by it stays so up to the end
of the file: of the log, where it has caught up, or of a segment, after which the next one is tried. To go back and
forth with every part that happens to be in memory would try the loop at each border, just where memory is short.
"""

from __future__ import annotations

from typing import Final

READERS_MAX: Final = 1024
STRETCH_BYTES: Final = 4 * 1024 * 1024
DISK_SHARE_MIN: Final = 8
"""One of so many bytes must come from the disk for a reader to stay cold."""
_JUDGED: Final = -1


class ColdReaders:
    __slots__ = ("_stops",)

    def __init__(self) -> None:
        self._stops: dict[tuple[str, int], tuple[int, int]] = {}
        """By path and position: what was read, and what the disk brought, until it was judged."""

    def __bool__(self) -> bool:
        return bool(self._stops)

    def expects(self, path: str, position: int) -> bool:
        """Whether a read that begins here goes on with one that was cold."""
        return (path, position) in self._stops

    def moved(self, path: str, start: int, end: int, disk_bytes_now: int, *, is_at_end: bool) -> None:
        """A thread has read this range, perhaps up to the end of the file; so much of it was on the disk."""
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
