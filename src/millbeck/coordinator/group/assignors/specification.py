"""What an assignor is told and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from millbeck.kernel.ids import Uuid

Partitions = Mapping[Uuid, tuple[int, ...]]
"""By topic id, ascending."""


class MemberSpecification(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    topics: tuple[Uuid, ...]
    """The existing topics it subscribes to, ascending."""
    current: Partitions
    """Its part of the target so far: what it should keep if that is fair."""


class TopicSpecification(NamedTuple):
    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()
    """For each partition the racks of its replicas; empty when they are not known."""

    def racks_of(self, partition: int) -> tuple[str, ...]:
        return self.racks[partition] if partition < len(self.racks) else ()


Topics = Mapping[Uuid, TopicSpecification]
Assignor = Callable[[Sequence[MemberSpecification], Topics], dict[str, Partitions]]
"""Every member gets an entry. Every partition that somebody subscribes to is in exactly one of them."""
