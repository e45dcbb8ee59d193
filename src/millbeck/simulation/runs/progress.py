"""Progress messages of long runs, printed line by line and flushed, also without a terminal."""

from __future__ import annotations

import sys


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
