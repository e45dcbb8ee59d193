"""Timers on the event loop: a timer wheel with one ``call_at`` for the next deadline, however many timers there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from millbeck.kernel.timer_wheel import Timer, TimerWheel


class Deadlines:
    """Deadlines in milliseconds of the loop's clock, with a resolution of 1 ms; nothing ticks while idle."""

    def __init__(self, loop: asyncio.AbstractEventLoop, report: Callable[[Exception], None]) -> None:
        self._loop = loop
        self._report = report
        self._wheel = TimerWheel(self.now_ms())
        self._wake: asyncio.TimerHandle | None = None
        self._wake_ms = 0

    def __len__(self) -> int:
        """The number of pending timers."""
        return len(self._wheel)

    def now_ms(self) -> int:
        # 16.333 s is 16332.999999999998 ms: without the microsecond, a timer that fires exactly on time would find its
        # deadline still ahead and be set again for the same time.
        return int(self._loop.time() * 1000 + 0.001)

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Call ``callback`` once, not before ``delay_ms`` have passed, unless the timer is cancelled."""
        # Plus 1, because now_ms rounds down and a timer must never fire early.
        deadline_ms = self.now_ms() + delay_ms + 1
        timer = self._wheel.add(deadline_ms, callback)
        if self._wake is None or deadline_ms < self._wake_ms:
            self._schedule(deadline_ms)
        return timer

    def _schedule(self, deadline_ms: int) -> None:
        if self._wake is not None:
            self._wake.cancel()
        self._wake_ms = deadline_ms
        self._wake = self._loop.call_at(deadline_ms / 1000, self._fire)

    def _fire(self) -> None:
        self._wake = None
        for callback in self._wheel.advance(self.now_ms()):
            try:
                callback()
            except Exception as error:
                self._report(error)
        following_ms = self._wheel.next_deadline_ms()
        if following_ms is not None and (self._wake is None or following_ms < self._wake_ms):
            self._schedule(following_ms)

    def close(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
