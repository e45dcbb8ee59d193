"""Counters and gauges of a group shard, for the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(slots=True)
class Counters:
    """Totals since the shard was loaded."""

    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    completed_rebalances: int = 0
    expired_members: int = 0
    consumer_rebalances: int = 0
    streams_rebalances: int = 0


class CommittedOffset(NamedTuple):
    """A group's committed offset on one partition; its lag is the partition's end minus ``offset``."""

    group_id: str
    topic: str
    partition: int
    offset: int
    is_group_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardStatistics:
    group_counts: dict[str, int]
    """Number of classic groups by state name; states without groups are included."""
    consumer_group_counts: dict[str, int]
    streams_group_counts: dict[str, int]
    offset_count: int
    counters: Counters
