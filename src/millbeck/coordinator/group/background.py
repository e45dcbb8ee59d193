"""Work that a shard gives away because it would hold the loop: a pure job, and what to decide with its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.runtime.result import Result

T = TypeVar("T")


class Background(Protocol):
    def run(
        self, job: Callable[[], T], then: Callable[[T, int], Result[GroupRecord, None]], failed: Callable[[], None]
    ) -> None:
        """Run ``job`` elsewhere; later carry ``then(result, now_ms)`` out as an operation of the shard.

        ``failed`` is called instead when the job raises, and after ``then`` when its records cannot be written."""
