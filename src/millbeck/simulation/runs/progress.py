"""How long runs tell of their progress: a line at a time, at once, also when nobody has a terminal."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
