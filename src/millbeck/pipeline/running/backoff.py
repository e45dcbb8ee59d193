"""Exponential restart backoff; a run that has made progress resets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 60.0
GOOD_RUN_SECONDS: Final = 300.0


@dataclass(slots=True)
class RestartBackoff:
    """The restart delays of a run; gives up after ``attempts_max`` consecutive failures (None: never)."""

    attempts_max: int | None = None
    failures: int = 0

    def failed(self, ran_seconds: float, *, has_progressed: bool = False) -> float | None:
        """The wait before the next attempt, None to give up; a run that wrote a batch resets the count."""
        if has_progressed or ran_seconds >= GOOD_RUN_SECONDS:
            self.failures = 0
        self.failures += 1
        if self.attempts_max is not None and self.failures > self.attempts_max:
            return None
        return min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self.failures - 1, 16))
