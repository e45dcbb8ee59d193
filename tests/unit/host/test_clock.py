"""The real clock is the system's."""

from __future__ import annotations

import time

from millbeck.host.clock import HostClock


def test_both_clocks_are_the_systems() -> None:
    clock = HostClock()
    before, now, after = time.monotonic(), clock.monotonic(), time.monotonic()
    assert before <= now <= after
    assert abs(clock.wall_ms() - time.time() * 1000) < 1000
