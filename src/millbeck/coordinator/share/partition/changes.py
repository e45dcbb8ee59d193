"""Changes on their way to the share coordinator: what they are, and how several of them become one write.

A change is decided, written, and takes effect when it is durable (`SharePartition.written`) or not at all
(`SharePartition.refused`). A lock that runs out is the exception: it takes effect at once and is written because of the
delivery count alone, unless it was the last one of a record that goes to the dead-letter topic: that is only written
there once it is known here for good, so that nobody is given it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from millbeck.coordinator.share.states import StateBatch


class Change:
    """``batches`` are the states after it; they need not be sorted."""

    __slots__ = ("batches", "is_applied", "rejected")

    def __init__(self, batches: Sequence[StateBatch], *, is_applied: bool = False) -> None:
        self.batches = batches
        self.is_applied = is_applied
        self.rejected: list[StateBatch] = []
        """Those of ``batches`` that a consumer has rejected."""

    def __bool__(self) -> bool:
        """Whether there is something to write."""
        return bool(self.batches)


class Dead(NamedTuple):
    """Records that are to be written to the dead-letter topic, and why."""

    first_offset: int
    last_offset: int
    delivery_count: int
    is_rejected: bool
    """By a consumer; otherwise they were delivered as often as they may be."""


class Write(NamedTuple):
    """What is sent for several changes: the state of the share partition as it will be with them."""

    start_offset: int
    delivery_complete_count: int
    """Records from ``start_offset`` on that are final already (KIP-1226)."""
    batches: list[StateBatch]
