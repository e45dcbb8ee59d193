"""When a failed run is tried again: soon, then after longer and longer waits; a run that got on wipes the slate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 60.0
GOOD_RUN_SECONDS: Final = 300.0


@dataclass(slots=True)
class Backoff:
    """``attempts_max`` failures in a row are too many; None never is."""

    attempts_max: int | None = None
    failures: int = 0

    def failed(self, ran_seconds: float, *, has_progressed: bool = False) -> float | None:
        """How long to wait before the next attempt, None to give up; a run that wrote a batch was not in vain."""
        if has_progressed or ran_seconds >= GOOD_RUN_SECONDS:
            self.failures = 0
        self.failures += 1
        if self.attempts_max is not None and self.failures > self.attempts_max:
            return None
        return min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self.failures - 1, 16))
