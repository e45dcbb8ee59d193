"""Time that the host gave to other machines, and measurements that are made again because of it.

A virtual machine shares its processors. What the host takes away while a process runs is counted as that process's own
CPU time, and a cell that is measured in such a second reads half as much again. So it is measured once more, for either
system alike, a bounded number of times; what is kept is the attempt that lost least.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

STOLEN_SHARE_MAX = 0.1
"""Of one core."""
ATTEMPTS_MAX = 3
_STOLEN_FIELD = 8


def stolen_seconds() -> float:
    """Since the machine was started, over all cores; always 0 where nobody counts it."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return 0.0
    return int(fields[_STOLEN_FIELD]) / os.sysconf("SC_CLK_TCK")


def least_disturbed(attempt: Callable[[], T], discard: Callable[[T], None] = lambda _: None) -> T:
    """The first attempt that was left alone, or the best of all; ``discard`` gets the others."""
    kept, kept_share = _timed(attempt)
    for _ in range(ATTEMPTS_MAX - 1):
        if kept_share <= STOLEN_SHARE_MAX:
            break
        outcome, share = _timed(attempt)
        if share < kept_share:
            kept, outcome, kept_share = outcome, kept, share
        discard(outcome)
    return kept


def _timed(attempt: Callable[[], T]) -> tuple[T, float]:
    started_s, stolen_s = time.monotonic(), stolen_seconds()
    outcome = attempt()
    return outcome, (stolen_seconds() - stolen_s) / max(time.monotonic() - started_s, 1e-9)
