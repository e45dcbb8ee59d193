"""The consumer's rebalance callbacks: a `RebalanceListener`, or single functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from millbeck.kernel.ids import TopicPartition

Partitions = list[TopicPartition]
RebalanceCallback = Callable[[Partitions], Awaitable[None] | None]


class RebalanceListener:
    """A rebalance listener: override the methods you need; each may be a coroutine. They run inside `Consumer.poll` or
    ``async for``."""

    def on_assigned(self, partitions: Partitions) -> Awaitable[None] | None:
        """Called after these partitions were assigned."""
        return None

    def on_revoked(self, partitions: Partitions) -> Awaitable[None] | None:
        """Called before these partitions are revoked, while this member still owns them and can commit."""
        return None

    def on_lost(self, partitions: Partitions) -> Awaitable[None] | None:
        """Called when these partitions were lost: other members may own them already. By default it calls
        `on_revoked`."""
        return self.on_revoked(partitions)


class Callbacks(RebalanceListener):
    """A listener made of single functions."""

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
    """Call a callback, and await its result if it is a coroutine."""
    if inspect.isawaitable(outcome):
        await outcome
