"""Progress messages of long runs: a line at a time, flushed, also without a terminal."""

from __future__ import annotations

import sys


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
