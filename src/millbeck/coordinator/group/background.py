"""Runs a shard's CPU-heavy work off the event loop: a pure job, and an operation that uses its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.runtime.result import Result

T = TypeVar("T")


class BackgroundExecutor(Protocol):
    def run(
        self, job: Callable[[], T], then: Callable[[T, int], Result[GroupRecord, None]], failed: Callable[[], None]
    ) -> None:
        """Run ``job`` off the event loop, then run ``then(result, now_ms)`` as an operation of the shard.

        ``failed`` is called instead if the job raises, and after ``then`` if its records cannot be written.
        """
