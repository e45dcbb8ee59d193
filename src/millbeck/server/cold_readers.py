"""Where readers that need the disk stopped, so that each goes on from there on a thread at once.

A try on the loop whether something is in memory starts its readahead, and readahead takes memory. Where memory is full,
as it is in a container that has read more than it may keep, whoever takes some must first find some to give back, and
the kernel may put it to sleep for 100 ms over that (docs/adr/0008). So a reader that was found cold is not tried again:
its next fetch, which begins where the last one ended, goes to a thread straight away.

It is an ordinary reader again once the disk had to bring little of what it has read lately: a log that is in memory but
for a few pages, which the kernel took back here and there, makes nobody cold for long. That a single read finds
everything in memory means little, since the kernel reads ahead; so they are judged by a stretch that is longer than
that. At the end of the file it is over as well: of the log, where a reader has caught up, or of a segment, after which
the next one is tried.
"""

from __future__ import annotations

from typing import Final

READERS_MAX: Final = 1024
STRETCH_BYTES: Final = 4 * 1024 * 1024
DISK_SHARE_MIN: Final = 8
"""One of so many bytes must come from the disk for a reader to stay cold."""


class ColdReaders:
    __slots__ = ("_stops",)

    def __init__(self) -> None:
        self._stops: dict[tuple[str, int], tuple[int, int]] = {}
        """By path and position: what was read, and what the disk brought, since it was last judged."""

    def __bool__(self) -> bool:
        return bool(self._stops)

    def expects(self, path: str, position: int) -> bool:
        """Whether a read that begins here goes on with one that was cold."""
        return (path, position) in self._stops

    def moved(self, path: str, start: int, end: int, disk_bytes: int, *, is_at_end: bool) -> None:
        """A thread has read this range, perhaps up to the end of the file; so much of it was on the disk."""
        read_before, disk_before = self._stops.pop((path, start), (0, 0))
        if is_at_end:
            return
        read_bytes, disk_bytes = read_before + end - start, disk_before + disk_bytes
        if read_bytes >= STRETCH_BYTES:
            if disk_bytes * DISK_SHARE_MIN < read_bytes:
                return
            read_bytes = disk_bytes = 0
        if len(self._stops) >= READERS_MAX:
            del self._stops[next(iter(self._stops))]
        self._stops[path, end] = read_bytes, disk_bytes
