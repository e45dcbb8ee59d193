"""The reassignment of a partition: added and removed replicas, completion and cancellation.

During a reassignment the replicas are the target replicas in their order, followed by the replicas to be removed. It is
complete when all target replicas are in sync; no replica is removed before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millbeck.metadata.image import PartitionRegistration


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """``replicas`` are all replicas during the reassignment."""

    replicas: tuple[int, ...]
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()

    @classmethod
    def between(cls, current: Sequence[int], target: Sequence[int]) -> Reassignment:
        removing = tuple(sorted(replica for replica in current if replica not in target))
        adding = tuple(sorted(replica for replica in target if replica not in current))
        return cls(replicas=(*target, *removing), removing=removing, adding=adding)

    @classmethod
    def of(cls, partition: PartitionRegistration) -> Reassignment:
        return cls(replicas=partition.replicas, removing=partition.removing_replicas, adding=partition.adding_replicas)

    def completed(self, isr: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Replicas and ISR after completion if ``isr`` has all target replicas; otherwise None."""
        if not self.removing and not self.adding:
            return None
        staying = self.target
        in_sync = tuple(replica for replica in isr if replica not in self.removing)
        if not staying or any(replica not in in_sync for replica in staying):
            return None
        return staying, in_sync

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)
