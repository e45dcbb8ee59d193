"""The result of a decision: its records, and the response that is sent once they are committed.

A decision about thousands of partitions is taken in `Steps`: a generator that yields now and then, so that the event
loop can do other work in between. No other decision is taken meanwhile.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from millbeck.metadata.records import MetadataRecord

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Yields where it may be suspended, and returns what it was for."""

RECORD_COUNT_MAX = 10_000
"""The most records a client's request may lead to; they are appended as one batch."""

RECORDS_AT_ONCE: Final = 100
"""How many records are made, replayed or encoded in one step: about a millisecond of work."""

PARTITIONS_AT_ONCE: Final = 1000
"""How many partitions are looked at in one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[T]):
    """``records`` take effect together when ``is_atomic``; otherwise they may be appended in several batches.

    ``kraft_version`` is the level that the quorum itself goes up to: its control records are the driver's to append.
    """

    response: T
    records: list[MetadataRecord] = field(default_factory=list)
    is_atomic: bool = True
    kraft_version: int | None = None


def finished(steps: Steps[T]) -> T:
    """Run all steps at once and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
