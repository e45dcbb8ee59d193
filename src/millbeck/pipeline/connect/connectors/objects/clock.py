"""The worker's clock, for what is cut or named by it; everything else about files is a function of the records."""

from __future__ import annotations

import time


def now_ms() -> int:
    return time.time_ns() // 1_000_000
