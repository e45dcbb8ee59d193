"""The machine's clocks."""

from __future__ import annotations

import time


class HostClock:
    """`monotonic` is the clock of the standard library's event loop, so the two can be compared."""

    monotonic = staticmethod(time.monotonic)

    busy_seconds = staticmethod(time.thread_time)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
