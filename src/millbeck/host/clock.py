"""The machine's clocks."""

from __future__ import annotations

import time
from typing import Final

SCHEDULING: Final = "/proc/thread-self/schedstat"
"""Linux: nanoseconds that the thread ran, and nanoseconds that it could have run and did not get a processor."""


class HostClock:
    """`monotonic` is the clock of the standard library's event loop, so the two can be compared."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self, scheduling: str = SCHEDULING) -> None:
        self._scheduling = scheduling

    def busy_seconds(self) -> float:
        """What waits for a processor that others use is not idle: it is late, and more load makes it later."""
        try:
            with open(self._scheduling, "rb") as file:
                waited_ns = int(file.read().split()[1])
        except (OSError, IndexError, ValueError):
            waited_ns = 0
        return time.thread_time() + waited_ns / 1e9

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
