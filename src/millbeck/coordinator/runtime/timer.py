"""Timers of a shard: each has a key, and each expiration is an operation that may write records.

Scheduling a key again reschedules it. The node's timers are accessed through `TimerService`; nothing here reads a
clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from millbeck.coordinator.runtime.result import Result
from millbeck.kernel.isolation import Isolation

R = TypeVar("R")

TimerKey = tuple[str, ...]
Operation = Callable[[int], Result[R, None] | list[Result[R, None]]]
"""The operation of an expiration: one result, or several that succeed or fail independently."""


class TimerHandle(Protocol):
    def cancel(self) -> object: ...


class TimerService(Protocol):
    def after(self, delay_ms: int, callback: Callable[[int], None]) -> TimerHandle:
        """Call ``callback`` once with the wall clock time in milliseconds, after ``delay_ms``."""


@dataclass(slots=True, eq=False)
class _Entry(Generic[R]):
    operation: Operation[R]
    retry_ms: int | None
    scheduled: TimerHandle | None = None


class Timers(Generic[R]):
    def __init__(
        self,
        scheduler: TimerService,
        run: Callable[[TimerKey, Operation[R], Callable[[], None], int], None],
        isolation: Isolation | None = None,
    ) -> None:
        """``run(key, operation, on_failed, now_ms)`` runs an expired timer's operation; ``isolation`` is the
        shard's."""
        self.isolation = isolation or Isolation()
        self._scheduler = scheduler
        self._run = run
        self._entries: dict[TimerKey, _Entry[R]] = {}

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def schedule(
        self,
        key: TimerKey,
        delay_ms: int,
        operation: Operation[R],
        *,
        retry_ms: int | None = None,
    ) -> None:
        """Run ``operation(now_ms)`` after ``delay_ms``; with ``retry_ms``, retry after that delay if its append
        fails."""
        self.cancel(key)
        self._arm(key, delay_ms, _Entry(operation, retry_ms))

    def cancel(self, key: TimerKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None and entry.scheduled is not None:
            entry.scheduled.cancel()

    def cancel_all(self) -> None:
        for key in list(self._entries):
            self.cancel(key)

    def _arm(self, key: TimerKey, delay_ms: int, entry: _Entry[R]) -> None:
        self._entries[key] = entry
        entry.scheduled = self._scheduler.after(delay_ms, lambda now_ms: self._expire(key, entry, now_ms))

    def _expire(self, key: TimerKey, entry: _Entry[R], now_ms: int) -> None:
        # The timer wheel may deliver an expiration that was cancelled or rescheduled in the same tick.
        if self._entries.get(key) is not entry:
            return
        del self._entries[key]
        self._run(key, entry.operation, lambda: self._retry(key, entry), now_ms)

    def _retry(self, key: TimerKey, entry: _Entry[R]) -> None:
        if entry.retry_ms is not None and key not in self._entries:
            self._arm(key, entry.retry_ms, entry)
