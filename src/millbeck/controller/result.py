"""The result of a decision: its records, and the response that is sent once they are committed.

A decision about thousands of partitions is made in `Steps`: a generator that yields at intervals, so that the event
loop can do other work in between. No other decision is made in that time.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from millbeck.metadata.records import MetadataRecord

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A generator that yields where it may be suspended, and returns the result."""

RECORD_COUNT_MAX = 10_000
"""The maximum number of records that a client's request may produce; they are appended as one batch."""

RECORDS_AT_ONCE: Final = 100
"""The number of records created, replayed or encoded per step: about a millisecond of work."""

PARTITIONS_AT_ONCE: Final = 1000
"""The number of partitions examined per step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[T]):
    """``records`` take effect together when ``is_atomic``; otherwise they may be appended in several batches.

    ``kraft_version`` is the new level of the quorum's own feature; the driver appends its control records.
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
