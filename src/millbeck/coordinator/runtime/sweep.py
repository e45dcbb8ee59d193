"""A periodic pass over the entities of a shard: visits each once; an error in one does not stop the others.

A pass visits the keys that existed when it started, in several steps with a pause in between so that none blocks the
event loop. A visit returns the records to write for its entity. A result with callbacks, or an atomic one, is a
separate write that is committed or fails independently. The records of other results share batches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import Any, Final, Generic, TypeVar

from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.timer import TimerKey, Timers

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

STEP_WEIGHT_MAX: Final = 1000
"""Maximum weight of one step, after which the event loop runs other work: a few tenths of a millisecond."""
WRITE_WEIGHT: Final = 50
"""Weight of a result that is written separately."""
STEP_PAUSE_MS: Final = 1


class Sweep(Generic[K, R]):
    def __init__(
        self,
        timers: Timers[R],
        key: TimerKey,
        visit: Callable[[K, int], Result[R, None] | None],
        *,
        keys: Callable[[], Iterable[K]],
        interval_ms: Callable[[], int],
        weight: Callable[[K], int] = lambda _: 0,
    ) -> None:
        """``visit(key, now_ms)`` returns the records to write, or None; ``weight(key)`` is the work of writing them."""
        self._timers = timers
        self._key = key
        self._visit = visit
        self._keys = keys
        self._interval_ms = interval_ms
        self._weight = weight
        self._left: Iterator[K] = iter(())

    def start(self) -> None:
        """Schedule a pass after the interval, repeatedly."""
        self._timers.schedule(self._key, self._interval_ms(), self._begin)

    def _begin(self, now_ms: int) -> list[Result[R, None]]:
        # Schedule the next pass first, so that an error cannot prevent it.
        self.start()
        self._left = iter(list(self._keys()))
        return self._step(now_ms)

    def _step(self, now_ms: int) -> list[Result[R, None]]:
        results: list[Result[R, None]] = []
        shared: list[R] = []
        weight = 0
        for key in self._left:
            weight += 1
            found = self._timers.isolation.run((self._key[0], key), partial(self._look_at, key, now_ms))
            if found is not None:
                weight += found[0]
                result = found[1]
                if _is_shareable(result):
                    shared += result.records
                    weight += len(result.records)
                else:
                    results.append(result)
                    weight += WRITE_WEIGHT
            if weight >= STEP_WEIGHT_MAX:
                self._timers.schedule(self._key, STEP_PAUSE_MS, self._step)
                break
        else:
            self.start()
        if shared:
            results.append(Result(records=shared, is_atomic=False))
        return results

    def _look_at(self, key: K, now_ms: int) -> tuple[int, Result[R, None]] | None:
        result = self._visit(key, now_ms)
        return None if result is None else (self._weight(key), result)


def _is_shareable(result: Result[Any, None]) -> bool:
    return not result.is_atomic and result.on_committed is None and result.on_failed is None
