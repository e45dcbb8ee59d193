"""State transitions that are being written to the share coordinator, and their combination into one write.

A transition takes effect when it is durable (`SharePartition.written`) or not at all (`SharePartition.refused`). An
expired acquisition lock is the exception: it takes effect at once and is only written for the delivery count. If it was
the last delivery of a record and the group has a dead-letter topic, the record is produced there only once the state is
durable, so that it is not delivered again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from millbeck.coordinator.share.states import StateBatch


class StateTransition:
    """A state transition; ``batches`` are the new states and need not be sorted."""

    __slots__ = ("batches", "is_applied", "rejected")

    def __init__(self, batches: Sequence[StateBatch], *, is_applied: bool = False) -> None:
        self.batches = batches
        self.is_applied = is_applied
        self.rejected: list[StateBatch] = []
        """The batches among ``batches`` that a consumer rejected."""

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.batches)


class DeadRecords(NamedTuple):
    """Records to produce to the dead-letter topic, and the reason."""

    first_offset: int
    last_offset: int
    delivery_count: int
    is_rejected: bool
    """True if a consumer rejected them, False if the delivery limit was reached."""


class PartitionWrite(NamedTuple):
    """One write for several transitions: the state of the share partition with them applied."""

    start_offset: int
    delivery_complete_count: int
    """The number of records at or after ``start_offset`` that are in a final state (KIP-1226)."""
    batches: list[StateBatch]
