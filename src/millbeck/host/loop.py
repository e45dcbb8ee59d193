"""asyncio's selector event loop with a selector that also counts the ready descriptors of its last poll.

A node collects the work of one iteration of the event loop and does it at the end, in a separate callback. If only one
connection was ready there is nothing to collect, and skipping the callback saves an iteration, some 3 µs of the 23 that
a single produce request takes.
"""

from __future__ import annotations

import asyncio
import select
import selectors
from typing import cast

from millbeck.host.direct_selector import DirectSelector


class _CountingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.ready_count = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout)
        self.ready_count = len(ready)
        return ready

    def serves_one_event(self) -> bool:
        return self.ready_count <= 1

    def may_rest(self) -> bool:
        """Always False: asyncio runs ready callbacks from its queue, and other work may be queued."""
        return False


class HostLoop(asyncio.SelectorEventLoop):
    def __init__(self, *, has_epoll: bool = hasattr(select, "epoll")) -> None:
        counting = DirectSelector(self) if has_epoll else _CountingSelector()
        self.serves_one_event = counting.serves_one_event
        """Whether at most one descriptor was ready in this iteration of the event loop."""
        self.may_rest = counting.may_rest
        """Whether a descriptor's callback may sleep briefly without delaying anything else."""
        super().__init__(cast(selectors.BaseSelector, counting))
