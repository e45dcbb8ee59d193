"""The records between a share partition's start and its end: runs of offsets that are in the same state.

The runs lie one behind the other without holes, in the order of their offsets. Whatever treats a part of a run in
another way splits it first (`isolate`); neighbours that have become alike are joined again (`join`), so that there are
never many more runs than records in somebody's hands.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from millbeck.coordinator.share.states import RecordState

if TYPE_CHECKING:
    from millbeck.coordinator.share.partition.changes import Change

NOBODY: Final = ""


class Lock:
    """A member's right to what it acquired at one time, until a deadline."""

    __slots__ = ("deadline_ms", "first_offset", "is_expired", "last_offset", "member_id")

    def __init__(self, member_id: str, first_offset: int, last_offset: int, deadline_ms: int) -> None:
        self.member_id = member_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.deadline_ms = deadline_ms
        self.is_expired = False

    def __lt__(self, other: Lock) -> bool:
        return self.deadline_ms < other.deadline_ms


class Run:
    """Offsets in the same state. While a change is under way ``state`` is still the old one, ``target`` the new."""

    __slots__ = ("change", "delivery_count", "first", "last", "lock", "state", "target")

    def __init__(self, first: int, last: int, state: RecordState, delivery_count: int) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.lock: Lock | None = None
        self.change: Change | None = None
        self.target = state

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __repr__(self) -> str:
        return f"Run({self.first}-{self.last} {self.state.name} {self.delivery_count} {self.owner})"

    @property
    def owner(self) -> str:
        return NOBODY if self.lock is None else self.lock.member_id

    def split_at(self, offset: int) -> Run:
        """Cut this run short before ``offset``; the rest is returned."""
        rest = Run(offset, self.last, self.state, self.delivery_count)
        rest.lock, rest.change, rest.target = self.lock, self.change, self.target
        self.last = offset - 1
        return rest

    def is_like(self, other: Run) -> bool:
        if self.state is not other.state or self.lock is not other.lock:
            return False
        if self.change is not other.change or self.target is not other.target:
            return False
        # How often something was delivered does not matter any more once it is over.
        return self.delivery_count == other.delivery_count or (self.state.is_final and self.change is None)


def _first_of(run: Run) -> int:
    return run.first


class Window:
    __slots__ = ("end_offset", "runs", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset - 1
        """The last offset in it; one before the start when there is none."""
        self.runs: list[Run] = []

    def __len__(self) -> int:
        """How many offsets it spans."""
        return self.end_offset - self.start_offset + 1

    def append(self, last: int, state: RecordState, delivery_count: int) -> Run:
        """Let it reach to ``last``, with one new run."""
        run = Run(self.end_offset + 1, last, state, delivery_count)
        self.runs.append(run)
        self.end_offset = last
        return run

    def overlapping(self, first: int, last: int) -> list[Run]:
        """The runs that have an offset of this range, in order."""
        runs = self.runs
        index = max(bisect_right(runs, first, key=_first_of) - 1, 0)
        found = []
        while index < len(runs) and runs[index].first <= last:
            if runs[index].last >= first:
                found.append(runs[index])
            index += 1
        return found

    def isolate(self, first: int, last: int) -> list[Run]:
        """The runs of exactly this range, which lies in the window; those at its ends are split when need be."""
        self._split(first)
        self._split(last + 1)
        return self.overlapping(first, last)

    def _split(self, offset: int) -> None:
        if not self.start_offset < offset <= self.end_offset:
            return
        index = bisect_right(self.runs, offset, key=_first_of) - 1
        run = self.runs[index]
        if run.first != offset:
            self.runs.insert(index + 1, run.split_at(offset))

    def join(self, first: int, last: int) -> None:
        """Make one run of neighbours that are alike, in and around this range."""
        runs = self.runs
        index = max(bisect_right(runs, first, key=_first_of) - 2, 0)
        while index + 1 < len(runs) and runs[index].first <= last:
            run, following = runs[index], runs[index + 1]
            if run.is_like(following):
                run.last = following.last
                run.delivery_count = max(run.delivery_count, following.delivery_count)
                del runs[index + 1]
            else:
                index += 1

    def drop_below(self, offset: int) -> None:
        """Let it start at ``offset``, which may lie beyond its end."""
        if offset <= self.start_offset:
            return
        runs = self.runs
        count = 0
        while count < len(runs) and runs[count].last < offset:
            count += 1
        del runs[:count]
        if runs and runs[0].first < offset:
            runs[0].first = offset
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset - 1)
