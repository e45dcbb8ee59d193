"""Folding of repeated audit events: the first one is written at once, the repetitions as one line with their count.

A client that is denied a thousand times per second would otherwise fill the disk. Each subject has a time window that
begins with its first event. At its end the repetitions are written, and another window begins if there were any. The
number of subjects is bounded: when there are too many, the events of further subjects are counted together by kind.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from millbeck.security.audit.events import AuditEvent, AuditKind

SUBJECTS_MAX: Final = 1000
OTHERS: Final = (("others", "too many different ones to list"),)
"""The subject in lines about events that are counted together."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """The repetitions to write at the end of a window."""

    event: AuditEvent
    count: int
    seconds: float


@dataclass(slots=True)
class _Window:
    event: AuditEvent
    began_ms: int
    repeats: int = 0


class Folding:
    def __init__(self, window_ms: int, *, subjects_max: int = SUBJECTS_MAX) -> None:
        self._window_ms = window_ms
        self._subjects_max = subjects_max
        self._windows: dict[AuditEvent, _Window] = {}
        self._order: deque[_Window] = deque()
        """The windows by their end time."""

    def record(self, event: AuditEvent, now_ms: int) -> bool:
        """Record an event; returns whether to write it now. Administrative changes are always written."""
        if event.kind is AuditKind.CHANGED:
            return True
        window = self._windows.get(event)
        if window is not None:
            window.repeats += 1
            return False
        if len(self._windows) < self._subjects_max:
            self._open(event, now_ms)
            return True
        others = AuditEvent(event.kind, OTHERS)
        window = self._windows.get(others) or self._open(others, now_ms)
        window.repeats += 1
        return False

    def expire(self, now_ms: int) -> list[Repeats]:
        """The repetitions of the windows that have ended."""
        ended = []
        while self._order and self._order[0].began_ms + self._window_ms <= now_ms:
            ended.append(self._order.popleft())
        found = [self._repeats(window, now_ms) for window in ended if window.repeats]
        for window in ended:
            if window.repeats:
                window.began_ms, window.repeats = now_ms, 0
                self._order.append(window)
            else:
                del self._windows[window.event]
        return found

    def flush(self, now_ms: int) -> list[Repeats]:
        """End all windows and return their repetitions."""
        found = [self._repeats(window, now_ms) for window in self._order if window.repeats]
        self._windows.clear()
        self._order.clear()
        return found

    def next_end_ms(self) -> int | None:
        return self._order[0].began_ms + self._window_ms if self._order else None

    def _open(self, event: AuditEvent, now_ms: int) -> _Window:
        window = self._windows[event] = _Window(event, now_ms)
        self._order.append(window)
        return window

    @staticmethod
    def _repeats(window: _Window, now_ms: int) -> Repeats:
        return Repeats(window.event, window.repeats, (now_ms - window.began_ms) / 1000)
