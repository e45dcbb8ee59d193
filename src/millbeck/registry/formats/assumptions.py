"""Results of comparing pairs of schemas that may contain themselves.

While a pair is being compared it counts as compatible, so that recursive schemas terminate. If it turns out not to be
compatible, everything is compared again with that result.

The problems of a pair are those of all pairs inside it, so without a limit their number would grow exponentially with
the depth of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from millbeck.registry.errors import SchemaTooLarge
from millbeck.registry.formats.interface import Incompatibility

STEPS_MAX: Final = 200_000
"""The maximum number of comparisons."""
PROBLEMS_MAX: Final = 50
"""The maximum number of problems of a pair that are kept."""

Problems = list[Incompatibility]


class Steps:
    """Counts the steps of a comparison, and of those that it starts itself."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._count = 0

    def add(self, count: int) -> None:
        """Count steps; raises `SchemaTooLarge` after too many."""
        self._count += count
        if self._count > self._count_max:
            raise SchemaTooLarge(f"comparing the schemas takes more than {self._count_max} steps")


class Assumptions:
    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._results: dict[Hashable, Problems] = {}
        self._comparing: dict[Hashable, None] = {}
        self._assumed: dict[Hashable, None] = {}
        """Pairs that counted as compatible while they were being compared."""
        self._incompatible: dict[Hashable, Problems] = {}

    def resolve(self, compare: Callable[[], Problems]) -> Problems:
        """Repeat ``compare``, which calls `once`, until all assumptions were correct; returns its result."""
        while True:
            self._results = dict(self._incompatible)
            self._assumed = {}
            problems = compare()
            wrong = {pair: self._results[pair] for pair in self._assumed if self._results[pair]}
            if not wrong:
                return problems
            self._incompatible.update(wrong)

    def once(self, pair: Hashable, compare: Callable[[], Problems], *, steps: int = 1) -> Problems:
        """The result for a pair, which is compared if it has not been yet."""
        if pair in self._comparing:
            self._assumed[pair] = None
            return []
        if pair not in self._results:
            self.steps.add(steps)
            self._comparing[pair] = None
            self._results[pair] = compare()[:PROBLEMS_MAX]
            del self._comparing[pair]
        return self._results[pair]
