"""Which records are one file. The cuts are a function of the records alone: offsets, timestamps, schemas, folders.

A cut is what one log partition has from one commit to the next: a file for each folder. It is complete when the record
after it is known not to belong to it, or when it has flush.size records. A share that is written again is cut at the
same places, since it begins at a cut and has the same records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.model.schema import Schema

F = TypeVar("F")


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRules:
    """flush.size, and rotate.interval.ms (0 or less: none), which is measured by the extractor's timestamps."""

    flush_size: int
    interval_ms: int
    moment: Callable[[SinkRecord], int]


@dataclass(slots=True)
class Cut(Generic[F]):
    """The records of one partition since the last cut. ``files`` are by folder; each has the offset of its first
    record."""

    files: dict[str, F] = field(default_factory=dict)
    record_count: int = 0
    base_ms: int | None = None
    path: str | None = None
    schema: Schema | None = None
    end: int = 0
    """Behind the last record."""

    def is_before(self, record: SinkRecord, path: str, rules: CutRules) -> bool:
        """Whether this record begins the next cut."""
        if self.record_count == 0:
            return False
        if self.record_count >= rules.flush_size or record.value_schema != self.schema:
            return True
        if rules.interval_ms <= 0:
            return False
        assert self.base_ms is not None
        return path != self.path or rules.moment(record) - self.base_ms >= rules.interval_ms

    def count(self, record: SinkRecord, path: str, rules: CutRules) -> None:
        if self.record_count == 0:
            self.base_ms = rules.moment(record) if rules.interval_ms > 0 else None
            self.schema = record.value_schema
        self.record_count += 1
        self.path = path
        self.end = record.offset + 1

    def is_full(self, rules: CutRules) -> bool:
        return self.record_count >= rules.flush_size
