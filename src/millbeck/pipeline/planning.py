"""Which offsets a batch reads, and who reads them: limits and ranges. Pure.

A task reads a range of one partition. A large range is cut so that tasks stay short and a topic of one partition still
uses every core: at `ROWS_PER_TASK_MAX`, at ``maxRecordsPerPartition``, and further until there are ``minPartitions``.
The cuts follow from the range and the options alone, so a batch that is run again is cut the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from millbeck.kernel.ids import TopicPartition, Uuid

ROWS_PER_TASK_MAX: Final = 1_000_000

Backlog = Mapping[TopicPartition, tuple[int, int]]
"""From where to where a partition could be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """What one task reads: ``start`` to before ``end``."""

    partition: TopicPartition
    start: int
    end: int
    topic_id: Uuid

    @property
    def size(self) -> int:
        return self.end - self.start


def limited(backlog: Backlog, count_max: int) -> dict[TopicPartition, int]:
    """Where to stop in each partition when about ``count_max`` offsets are read, shared out by what each has to read.

    Every partition that has something moves on by one at least, so that none starves behind a long one.
    """
    total = sum(max(0, end - start) for start, end in backlog.values())
    stops: dict[TopicPartition, int] = {}
    for partition in sorted(backlog):
        start, end = backlog[partition]
        size = max(0, end - start)
        if total <= count_max:
            stops[partition] = max(start, end)
            continue
        stops[partition] = start + min(size, max(count_max * size // total, 1))
    return stops


def split(ranges: list[OffsetRange], *, count_min: int | None = None, rows_max: int | None = None) -> list[OffsetRange]:
    """The ranges in pieces of ``rows_max`` at most, and ``count_min`` of them at least if there are as many offsets."""
    rows_max = rows_max or ROWS_PER_TASK_MAX
    wanted = [found for found in ranges if found.size > 0]
    counts = [-(-found.size // rows_max) for found in wanted]
    if count_min is not None and sum(counts) < count_min:
        total = sum(found.size for found in wanted)
        # Rounded up: a few tasks more than asked for, never fewer, unless there are not that many offsets.
        counts = [
            max(count, min(found.size, -(-count_min * found.size // total)))
            for found, count in zip(wanted, counts, strict=True)
        ]
    pieces: list[OffsetRange] = []
    for found, count in zip(wanted, counts, strict=True):
        cuts = [found.start + found.size * index // count for index in range(count + 1)]
        pieces += [replace(found, start=cuts[index], end=cuts[index + 1]) for index in range(count)]
    return pieces
