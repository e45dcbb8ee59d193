"""The records between a share partition's start and end offset: runs of consecutive offsets in the same state.

The runs are contiguous and ordered by offset. A change to a part of a run splits it first (`isolate`); adjacent runs in
the same state are joined again (`join`), so that there are not many more runs than acquired records.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from millbeck.coordinator.share.states import RecordState

if TYPE_CHECKING:
    from millbeck.coordinator.share.partition.changes import StateTransition

NOBODY: Final = ""


class AcquisitionLock:
    """A member's lock on the records of one acquisition, until a deadline."""

    __slots__ = ("deadline_ms", "first_offset", "is_expired", "last_offset", "member_id")

    def __init__(self, member_id: str, first_offset: int, last_offset: int, deadline_ms: int) -> None:
        self.member_id = member_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.deadline_ms = deadline_ms
        self.is_expired = False

    def __lt__(self, other: AcquisitionLock) -> bool:
        return self.deadline_ms < other.deadline_ms


class InFlightBatch:
    """Consecutive offsets in the same state. During a transition ``state`` is the old state and ``target`` the new
    one."""

    __slots__ = ("change", "delivery_count", "first", "last", "lock", "state", "target")

    def __init__(self, first: int, last: int, state: RecordState, delivery_count: int) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.lock: AcquisitionLock | None = None
        self.change: StateTransition | None = None
        self.target = state

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __repr__(self) -> str:
        return f"Run({self.first}-{self.last} {self.state.name} {self.delivery_count} {self.owner})"

    @property
    def owner(self) -> str:
        return NOBODY if self.lock is None else self.lock.member_id

    def split_at(self, offset: int) -> InFlightBatch:
        """Shorten this run to end before ``offset``; return the rest."""
        rest = InFlightBatch(offset, self.last, self.state, self.delivery_count)
        rest.lock, rest.change, rest.target = self.lock, self.change, self.target
        self.last = offset - 1
        return rest

    def is_like(self, other: InFlightBatch) -> bool:
        if self.state is not other.state or self.lock is not other.lock:
            return False
        if self.change is not other.change or self.target is not other.target:
            return False
        # The delivery count is irrelevant once the records are final.
        return self.delivery_count == other.delivery_count or (self.state.is_final and self.change is None)


def _first_of(run: InFlightBatch) -> int:
    return run.first


class InFlightWindow:
    __slots__ = ("end_offset", "runs", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset - 1
        """The last offset of the window; if it is empty, the offset before the start."""
        self.runs: list[InFlightBatch] = []

    def __len__(self) -> int:
        """Number of offsets in the window."""
        return self.end_offset - self.start_offset + 1

    def append(self, last: int, state: RecordState, delivery_count: int) -> InFlightBatch:
        """Extend the window to ``last`` with one new run."""
        run = InFlightBatch(self.end_offset + 1, last, state, delivery_count)
        self.runs.append(run)
        self.end_offset = last
        return run

    def overlapping(self, first: int, last: int) -> list[InFlightBatch]:
        """The runs that overlap this range, in order."""
        runs = self.runs
        index = max(bisect_right(runs, first, key=_first_of) - 1, 0)
        found = []
        while index < len(runs) and runs[index].first <= last:
            if runs[index].last >= first:
                found.append(runs[index])
            index += 1
        return found

    def isolate(self, first: int, last: int) -> list[InFlightBatch]:
        """The runs of exactly this range, which must be in the window; runs at its ends are split if necessary."""
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
        """Join adjacent runs with equal state in and next to this range."""
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

    def truncate_prefix(self, offset: int) -> None:
        """Move the window's start to ``offset``, which may be beyond its end."""
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
