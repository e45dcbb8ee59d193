"""Virtual clocks: one monotonic clock for the whole world, and a wall clock per machine that may jump."""

from __future__ import annotations

from millbeck.simulation.environment.loop import SimLoop


class SimClock:
    def __init__(self, loop: SimLoop, wall_start_ms: int) -> None:
        self.monotonic = loop.time
        self._wall_ms_at_zero = wall_start_ms

    def wall_ms(self) -> int:
        return self._wall_ms_at_zero + int(self.monotonic() * 1000)

    def wall_ns(self) -> int:
        return self.wall_ms() * 1_000_000

    def busy_seconds(self) -> float:
        """Code takes no virtual time, so a simulated thread is never busy."""
        return 0.0

    def jump_wall(self, milliseconds: int) -> None:
        """Move the machine's wall clock forward or back."""
        self._wall_ms_at_zero += milliseconds
