"""Where readers that need the disk stopped, so that each goes on from there on a thread at once.

A try on the loop whether something is in memory starts its readahead, and readahead takes memory. Where memory is full,
as it is in a container that has read more than it may keep, whoever takes some must first find some to give back, and
the kernel may put it to sleep for 100 ms over that (docs/adr/0008). So a reader that was found cold once is not tried
again: its next fetch, which begins where the last one ended, goes to a thread straight away. That what it then finds is
in memory means little, since the kernel reads ahead of it. It is an ordinary reader again once it has come to the end
of the file: of the log, where it has caught up, or of a segment, after which the next one is tried.
"""

from __future__ import annotations

from typing import Final

READERS_MAX: Final = 1024


class ColdReaders:
    __slots__ = ("_stops",)

    def __init__(self) -> None:
        self._stops: dict[tuple[str, int], None] = {}

    def __bool__(self) -> bool:
        return bool(self._stops)

    def expects(self, path: str, position: int) -> bool:
        """Whether a read that begins here goes on with one that was cold."""
        return (path, position) in self._stops

    def moved(self, path: str, start: int, end: int, *, is_at_end: bool) -> None:
        """A thread has read this range, perhaps up to the end of the file."""
        self._stops.pop((path, start), None)
        if is_at_end:
            return
        if len(self._stops) >= READERS_MAX:
            del self._stops[next(iter(self._stops))]
        self._stops[path, end] = None
