"""The consumer's rebalance callbacks: a `RebalanceListener`, or single functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from millbeck.kernel.ids import TopicPartition

Partitions = list[TopicPartition]
RebalanceCallback = Callable[[Partitions], Awaitable[None] | None]


class RebalanceListener:
    """Override what matters; each method may be a coroutine. They run inside `Consumer.poll` or ``async for``."""

    def on_assigned(self, partitions: Partitions) -> Awaitable[None] | None:
        """These partitions were added."""
        return None

    def on_revoked(self, partitions: Partitions) -> Awaitable[None] | None:
        """These partitions are given up, and still belong to this member: it can commit."""
        return None

    def on_lost(self, partitions: Partitions) -> Awaitable[None] | None:
        """These partitions belong to others already; by default as `on_revoked`."""
        return self.on_revoked(partitions)


class Callbacks(RebalanceListener):
    """Single functions as a listener."""

    def __init__(
        self,
        assigned: RebalanceCallback | None = None,
        revoked: RebalanceCallback | None = None,
        lost: RebalanceCallback | None = None,
    ) -> None:
        self._assigned = assigned
        self._revoked = revoked
        self._lost = lost or revoked

    def on_assigned(self, partitions: Partitions) -> Awaitable[None] | None:
        return None if self._assigned is None else self._assigned(partitions)

    def on_revoked(self, partitions: Partitions) -> Awaitable[None] | None:
        return None if self._revoked is None else self._revoked(partitions)

    def on_lost(self, partitions: Partitions) -> Awaitable[None] | None:
        return None if self._lost is None else self._lost(partitions)


async def call(outcome: Awaitable[None] | None) -> None:
    """Wait for what a callback returned, if it is a coroutine."""
    if inspect.isawaitable(outcome):
        await outcome
