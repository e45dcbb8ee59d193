"""A queue of responses that wait until a watermark (high watermark, committed offset) reaches their offset.

One queue belongs to one partition. Offsets of appends ascend, so items are almost always added in order, and
completing them only takes items off the front. An item whose deadline has passed is abandoned in place and removed
when it reaches the front, or when abandoned items outnumber the others, so the queue never has more than twice the
number of waiting items.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Deferred(Generic[T]):
    """A waiting item of a `DeferredQueue`."""

    __slots__ = ("_queue", "item", "offset")

    def __init__(self, offset: int, item: T, queue: DeferredQueue[T]) -> None:
        self.offset = offset
        self.item = item
        self._queue: DeferredQueue[T] | None = queue

    @property
    def is_parked(self) -> bool:
        return self._queue is not None

    def abandon(self) -> bool:
        """Stop waiting (deadline passed, connection closed), so that the item is never completed; returns False if it
        has ended already.
        """
        queue, self._queue = self._queue, None
        if queue is None:
            return False
        queue._on_abandoned()
        return True


class DeferredQueue(Generic[T]):
    __slots__ = ("_abandoned_count", "_parked")

    def __init__(self) -> None:
        self._parked: deque[Deferred[T]] = deque()
        self._abandoned_count = 0

    def __len__(self) -> int:
        return len(self._parked) - self._abandoned_count

    @property
    def first_offset(self) -> int | None:
        """The smallest offset of the waiting items."""
        self._drop_abandoned_front()
        return self._parked[0].offset if self._parked else None

    def park(self, offset: int, item: T) -> Deferred[T]:
        """Add an item that waits until the watermark is at least ``offset``. Equal offsets complete in the order
        added.
        """
        deferred = Deferred(offset, item, self)
        parked = self._parked
        if not parked or parked[-1].offset <= offset:
            parked.append(deferred)
        else:
            self._insert(deferred)
        return deferred

    def pop_until(self, watermark: int) -> list[T]:
        """Remove and return all items whose offset the watermark has reached, in offset order."""
        parked = self._parked
        completed = []
        while parked and parked[0].offset <= watermark:
            deferred = parked.popleft()
            if deferred._queue is None:
                self._abandoned_count -= 1
            else:
                deferred._queue = None
                completed.append(deferred.item)
        return completed

    def pop_all(self) -> list[T]:
        """Remove and return all items, in offset order, because the leadership is lost or the log is closing."""
        completed = [deferred.item for deferred in self._parked if deferred._queue is not None]
        for deferred in self._parked:
            deferred._queue = None
        self._parked.clear()
        self._abandoned_count = 0
        return completed

    def _insert(self, deferred: Deferred[T]) -> None:
        index = len(self._parked)
        while index > 0 and self._parked[index - 1].offset > deferred.offset:
            index -= 1
        self._parked.insert(index, deferred)

    def _drop_abandoned_front(self) -> None:
        while self._parked and self._parked[0]._queue is None:
            self._parked.popleft()
            self._abandoned_count -= 1

    def _on_abandoned(self) -> None:
        self._abandoned_count += 1
        if self._abandoned_count * 2 > len(self._parked):
            self._parked = deque(deferred for deferred in self._parked if deferred._queue is not None)
            self._abandoned_count = 0
