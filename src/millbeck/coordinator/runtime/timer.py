"""A shard's timers: each has a key, and each expiry is an operation like a request, with records of its own.

Scheduling a key again moves it. The machine's timers are behind `Scheduler`; nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from millbeck.coordinator.runtime.result import Result

R = TypeVar("R")

TimerKey = tuple[str, ...]


class Scheduled(Protocol):
    def cancel(self) -> object: ...


class Scheduler(Protocol):
    def after(self, delay_ms: int, callback: Callable[[int], None]) -> Scheduled:
        """Call ``callback`` with the wall time in milliseconds, once, when ``delay_ms`` have passed."""


@dataclass(slots=True, eq=False)
class _Entry(Generic[R]):
    operation: Callable[[int], Result[R, None]]
    retry_ms: int | None
    scheduled: Scheduled | None = None


class Timers(Generic[R]):
    def __init__(
        self, scheduler: Scheduler, run: Callable[[Callable[[int], Result[R, None]], Callable[[], None], int], None]
    ) -> None:
        """``run(operation, on_failed, now_ms)`` carries an expired operation out."""
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
        operation: Callable[[int], Result[R, None]],
        *,
        retry_ms: int | None = None,
    ) -> None:
        """Run ``operation(now_ms)`` after ``delay_ms``; with ``retry_ms`` again that much later if its append fails."""
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
        # A wheel may deliver an expiry that was cancelled or moved in the same turn.
        if self._entries.get(key) is not entry:
            return
        del self._entries[key]
        self._run(entry.operation, lambda: self._retry(key, entry), now_ms)

    def _retry(self, key: TimerKey, entry: _Entry[R]) -> None:
        if entry.retry_ms is not None and key not in self._entries:
            self._arm(key, entry.retry_ms, entry)
