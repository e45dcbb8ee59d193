"""Isolation of failures in loops over entities: one that fails does not stop the others.

A timer's pass over groups, transactional ids or brokers must not stop at one of them: its exception is counted, logged
once with its traceback, and the pass continues. An entity that succeeds again may be logged again. The number of
remembered entities is bounded; beyond that, failures are counted but not logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Hashable
from typing import Final, TypeVar

T = TypeVar("T")

LOGGED_ENTITIES_MAX: Final = 100

logger = logging.getLogger(__name__)


class Isolation:
    def __init__(self, on_failed: Callable[[], object] = lambda: None) -> None:
        """``on_failed`` is called for every failure, logged or not."""
        self.failure_count = 0
        self._on_failed = on_failed
        self._logged: dict[Hashable, None] = {}

    def run(self, entity: Hashable, step: Callable[[], T]) -> T | None:
        """The result of ``step``, or None when it raised. ``entity`` names the operation and its object in the log."""
        try:
            result = step()
        except Exception as error:
            self.failed(entity, error)
            return None
        self._logged.pop(entity, None)
        return result

    def run_steps(self, entity: Hashable, steps: Generator[None, None, T]) -> Generator[None, None, T | None]:
        """Like `run`, for a generator that yields in between."""
        try:
            result = yield from steps
        except Exception as error:
            self.failed(entity, error)
            return None
        self._logged.pop(entity, None)
        return result

    def failed(self, entity: Hashable, error: Exception) -> None:
        self.failure_count += 1
        self._on_failed()
        if entity in self._logged or len(self._logged) >= LOGGED_ENTITIES_MAX:
            return
        self._logged[entity] = None
        logger.error("%s failed, continuing with the others", entity, exc_info=error)
