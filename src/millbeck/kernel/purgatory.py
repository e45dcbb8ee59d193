"""Operations that wait for something to happen to one of several keys, or for a deadline.

An operation is tried when it is parked and again whenever one of its keys is notified. It ends exactly once: completed
(`try_complete` said so), expired (its deadline came first) or withdrawn (its connection closed). `notify` only marks;
`settle` tries the marked ones, once each however many of their keys were notified, so nothing runs inside the code that
notifies. The order of completion is the order of parking, whatever the order of notification.

    waiting --notify, settle, try_complete is True--> completed
    waiting --deadline, advance of the wheel--------> expired     (on_expired)
    waiting --withdraw------------------------------> withdrawn   (nothing is called)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from millbeck.kernel.timer_wheel import Timer, TimerWheel


class Operation(Protocol):
    def try_complete(self) -> bool:
        """Finish if it can be finished now (answer, and return True) or change nothing and return False."""

    def on_expired(self) -> None:
        """The deadline came first: answer with what there is."""


K = TypeVar("K", bound=Hashable)


class Parked(Generic[K]):
    """One waiting operation's entry."""

    __slots__ = ("_keys", "_number", "_purgatory", "_timer", "is_marked", "is_over", "operation")

    def __init__(self, operation: Operation, number: int, keys: tuple[K, ...], purgatory: Purgatory[K]) -> None:
        self.operation = operation
        self.is_over = False
        self.is_marked = False
        self._number = number
        self._keys = keys
        self._purgatory = purgatory
        self._timer: Timer | None = None

    def withdraw(self) -> bool:
        """Forget it without calling it; False when it is over already."""
        if self.is_over:
            return False
        self._purgatory._end(self)
        return True

    def _expire(self) -> None:
        # A due timer cannot be cancelled any more, so the operation may have completed in the same turn.
        if not self.is_over:
            self._purgatory._end(self)
            self.operation.on_expired()


_number_of = attrgetter("_number")


class Purgatory(Generic[K]):
    """The deadlines ride on the wheel it is given: whoever advances that wheel calls what comes out of it."""

    def __init__(self, wheel: TimerWheel) -> None:
        self._wheel = wheel
        self._watchers: dict[K, dict[Parked[K], None]] = {}
        self._marked: list[Parked[K]] = []
        self._count = 0
        self._number = 0

    def __len__(self) -> int:
        """How many operations wait."""
        return self._count

    def watcher_count(self, key: K) -> int:
        return len(self._watchers.get(key, ()))

    def park(self, operation: Operation, keys: Iterable[K], deadline_ms: int) -> Parked[K] | None:
        """Try the operation at once; None when that finished it, otherwise wait for a key or the deadline."""
        if operation.try_complete():
            return None
        self._number += 1
        parked = Parked(operation, self._number, tuple(dict.fromkeys(keys)), self)
        for key in parked._keys:
            self._watchers.setdefault(key, {})[parked] = None
        self._count += 1
        parked._timer = self._wheel.add(deadline_ms, parked._expire)
        return parked

    def notify(self, key: K) -> None:
        """Something happened to the key: mark its watchers for the next `settle`."""
        for parked in self._watchers.get(key, ()):
            if not parked.is_marked:
                parked.is_marked = True
                self._marked.append(parked)

    def settle(self) -> int:
        """Try every marked operation once; returns how many completed.

        What gets notified while this runs is tried by the next call.
        """
        if not self._marked:
            return 0
        marked, self._marked = self._marked, []
        marked.sort(key=_number_of)
        completed_count = 0
        for index, parked in enumerate(marked):
            parked.is_marked = False
            if parked.is_over:
                continue
            try:
                is_complete = parked.operation.try_complete()
            except BaseException:
                # It stays until its deadline; the others must not lose their turn over it.
                self._marked = marked[index + 1 :] + self._marked
                raise
            if is_complete:
                completed_count += 1
                parked.withdraw()
        return completed_count

    def _end(self, parked: Parked[K]) -> None:
        parked.is_over = True
        self._count -= 1
        assert parked._timer is not None
        parked._timer.cancel()
        for key in parked._keys:
            watchers = self._watchers[key]
            del watchers[parked]
            if not watchers:
                del self._watchers[key]
