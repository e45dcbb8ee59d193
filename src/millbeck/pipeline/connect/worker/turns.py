"""When a connector is asked for its next plan. Pure: time is an argument."""

from __future__ import annotations

from dataclasses import dataclass

IDLE_MIN_S = 0.5
"""The least wait after a plan of which nothing could be run, whatever it said."""


@dataclass(slots=True)
class TurnClock:
    """Due at ``due_s``, or when something has woken it."""

    due_s: float | None = 0.0
    is_woken: bool = False

    def wake(self) -> None:
        self.is_woken = True

    def planned(self, now_s: float, again_s: float | None, *, ran: int, planned: int, retry_s: float | None) -> None:
        """Note a plan made at ``now_s`` of which ``ran`` shares of ``planned`` were run; a task that rests works again
        at ``retry_s``."""
        due_s = None if again_s is None else now_s + max(0.0, again_s)
        if not ran and (planned or again_s == 0):
            # All that there is rests, or a plan says "at once" of nothing: this must not go round and round.
            due_s = now_s + IDLE_MIN_S
        elif ran < planned:
            due_s = now_s
        if retry_s is not None:
            due_s = retry_s if due_s is None else min(due_s, retry_s)
        self.due_s = due_s

    def begin(self) -> None:
        """A plan is being asked for: what wakes the connector from now on is for the next one."""
        self.is_woken = False

    def wait_s(self, now_s: float) -> float | None:
        """How long to wait for the next plan, unless woken; None: until woken."""
        if self.is_woken:
            return 0.0
        return None if self.due_s is None else max(0.0, self.due_s - now_s)
