"""Input and output types of assignors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from millbeck.kernel.ids import Uuid

Partitions = Mapping[Uuid, tuple[int, ...]]
"""Partitions by topic id, ascending."""


class MemberSpecification(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    topics: tuple[Uuid, ...]
    """Ids of the existing topics the member subscribes to, ascending."""
    current: Partitions
    """The member's current target assignment, which the assignor should preserve where balance permits."""


class TopicSpecification(NamedTuple):
    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()
    """Racks of each partition's replicas; empty when racks are unknown."""

    def racks_of(self, partition: int) -> tuple[str, ...]:
        return self.racks[partition] if partition < len(self.racks) else ()


Topics = Mapping[Uuid, TopicSpecification]
Assignor = Callable[[Sequence[MemberSpecification], Topics], dict[str, Partitions]]
"""Every member gets an entry, and every partition of a subscribed topic is assigned to exactly one member."""
