"""Violations found by an observer: the first one ends the run, with its details.

A checker can be disabled by name, to find out which ones detect a given mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millbeck.simulation.histories.history import Anomaly


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation of an invariant; ``offset`` is -1 if it concerns no offset, ``partition`` is empty if it concerns the
    whole cluster."""

    invariant: str
    node: str
    partition: str
    offset: int
    at_s: float
    detail: str

    def __str__(self) -> str:
        where = f" at offset {self.offset}" if self.offset >= 0 else ""
        return f"{self.invariant} on {self.node}, {self.partition}{where}, after {self.at_s:.3f} s: {self.detail}"

    def anomaly(self) -> Anomaly:
        return Anomaly(self.invariant, str(self))


class InvariantBroken(Exception):
    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


class Violations:
    """``omitted`` are the invariants that are not checked."""

    def __init__(self, now_s: Callable[[], float], omitted: frozenset[str] = frozenset()) -> None:
        self.omitted = omitted
        self.first: Violation | None = None
        self._now_s = now_s

    def expect(self, holds: bool, invariant: str, node: str, partition: str, offset: int, detail: str) -> None:
        """Raise `InvariantBroken` if an enabled invariant does not hold. ``detail`` is always built: keep it cheap."""
        if not holds:
            self.broken(invariant, node, partition, offset, detail)

    def broken(self, invariant: str, node: str, partition: str, offset: int, detail: str) -> None:
        if invariant in self.omitted:
            return
        violation = Violation(
            invariant=invariant, node=node, partition=partition, offset=offset, at_s=self._now_s(), detail=detail
        )
        if self.first is None:
            self.first = violation
        raise InvariantBroken(violation)
