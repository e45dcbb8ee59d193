"""Plan a batch: which offsets it reads, split into ranges for tasks. Pure.

A task reads a range of one partition. A large range is split so that tasks stay short and a topic with one partition
still uses all cores: at `ROWS_PER_TASK_MAX`, at ``maxRecordsPerPartition``, and further until there are
``minPartitions``. The splits depend only on the range and the options, so a repeated batch is split the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from millbeck.kernel.ids import TopicPartition, Uuid

ROWS_PER_TASK_MAX: Final = 1_000_000

Backlog = Mapping[TopicPartition, tuple[int, int]]
"""Start and end offset of each partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """The offsets one task reads: ``start`` inclusive, ``end`` exclusive."""

    partition: TopicPartition
    start: int
    end: int
    topic_id: Uuid

    @property
    def size(self) -> int:
        return self.end - self.start


def limited(backlog: Backlog, count_max: int) -> dict[TopicPartition, int]:
    """The end offsets that limit a batch to about ``count_max`` offsets in all, in proportion to the backlogs.

    Every partition with a backlog advances by at least one, so that none starves behind a long one.
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
    """Split ranges into pieces of at most ``rows_max``, and at least ``count_min`` of them if offsets suffice."""
    rows_max = rows_max or ROWS_PER_TASK_MAX
    wanted = [found for found in ranges if found.size > 0]
    counts = [-(-found.size // rows_max) for found in wanted]
    if count_min is not None and sum(counts) < count_min:
        total = sum(found.size for found in wanted)
        # Rounded up: a few more tasks than requested, never fewer, unless there are too few offsets.
        counts = [
            max(count, min(found.size, -(-count_min * found.size // total)))
            for found, count in zip(wanted, counts, strict=True)
        ]
    pieces: list[OffsetRange] = []
    for found, count in zip(wanted, counts, strict=True):
        cuts = [found.start + found.size * index // count for index in range(count + 1)]
        pieces += [replace(found, start=cuts[index], end=cuts[index + 1]) for index in range(count)]
    return pieces
